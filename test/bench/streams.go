package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed streams/main.go
var streamsProgram string

// The names of rows, which end with the kind of place.
const (
	whatDown    = "one stream into a sandbox "
	whatUp      = "one stream out of a sandbox "
	whatForward = "one stream through a forwarded port from a sandbox "
)

const streamsConfig = `[container]
ports = ["streams"]
[container.services.streams]
command = ["./streams", "serve"]
ready = { port = "streams" }
`

// streamRounds is how often one stream is measured.
const streamRounds = 3

// streamBytes is what one brings, in bytes: the size in streams/main.go.
const streamBytes = 256 << 20

// tunnel returns an address here behind which another one is, by what stands beside
// litterbox; remote says that the other one is there.
type tunnel func(remote bool, address string) (string, func() error, error)

// streams measures the bytes of one connection in each direction, and through a
// forwarded port, of a sandbox that create makes. beside is nil where only the direct
// way stands beside it.
func (b *bench) streams(kind string, beside tunnel, name string, create ...string) (err error) {
	if err := b.build("streams-program", streamsProgram); err != nil {
		return err
	}
	program, repo := filepath.Join(b.dir, "streams-program"), filepath.Join(b.dir, "streams-"+name)
	if err := os.Mkdir(repo, 0o755); err != nil {
		return err
	}
	if err := b.fill(repo, 1); err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(filepath.Join(repo, "streams"), content, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(repo, ".litterbox.toml"), []byte(streamsConfig), 0o600)
	}
	if err != nil {
		return err
	}
	address, end, err := served(program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for _, argv := range [][]string{
		{"git", "add", "-A"}, {"git", "commit", "-qm", "streams"},
		append([]string{b.litterbox, "create", name}, create...),
		{b.litterbox, "allow", name, address},
		{b.litterbox, "service", name, "start"},
	} {
		if err := b.command(repo, argv...); err != nil {
			return err
		}
	}
	output, err := b.output(repo, b.litterbox, "ports", name, "--json")
	if err != nil {
		return err
	}
	var numbers []struct{ Host int }
	if err := json.Unmarshal([]byte(output), &numbers); err != nil || len(numbers) != 1 {
		return fmt.Errorf("cannot read the ports %q: %w", output, err)
	}
	inside := func(way string) streaming {
		return streaming{repo, []string{b.litterbox, "exec", name, "--no-commit", "--", "./streams", way, address}}
	}
	here := func(way, address string) streaming { return streaming{repo, []string{program, way, address}} }
	forwarded := fmt.Sprintf("127.0.0.1:%d", numbers[0].Host)
	for _, one := range []struct {
		what   string
		litter streaming
		way    string
		remote bool
	}{
		{whatDown, inside("down"), "down", false},
		{whatUp, inside("up"), "up", false},
		{whatForward, here("down", forwarded), "down", true},
	} {
		if err := b.streamed(one.what+kind, one.litter, here(one.way, address), direct); err != nil {
			return err
		}
		if beside == nil {
			continue
		}
		near, end, err := beside(one.remote, address)
		if err != nil {
			return err
		}
		if err := join(b.streamed(one.what+kind, one.litter, here(one.way, near), besideTunnel), end()); err != nil {
			return err
		}
	}
	return b.command(repo, b.litterbox, "delete", "--force", "--purge", name)
}

// streaming is a client that prints how many nanoseconds its stream took.
type streaming struct {
	dir  string
	argv []string
}

// streamed adds a row of two streams, measured in turns.
func (b *bench) streamed(what string, here, other streaming, name string) error {
	var rates [2]float64
	for range min(b.rounds, streamRounds) {
		for i, one := range []streaming{here, other} {
			output, err := b.output(one.dir, one.argv...)
			if err != nil {
				return err
			}
			took, err := strconv.ParseInt(strings.TrimSpace(output), 10, 64)
			if err != nil {
				return err
			}
			rates[i] = max(rates[i], streamBytes*8/time.Duration(took).Seconds()/1e9)
		}
	}
	b.report.add(row{What: what, Here: measure{Value: rates[0], Unit: gigabits}, Beside: name, There: measure{Value: rates[1], Unit: gigabits}})
	return nil
}

// served starts the server outside, at an address of this machine that is not
// loopback: inside, that is the sandbox's own.
func served(program string) (address string, end func() error, err error) {
	own, err := ownAddress()
	if err != nil {
		return "", nil, err
	}
	server := exec.Command(program, "serve", net.JoinHostPort(own, "0"))
	said, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	end = func() error {
		err := server.Process.Kill()
		_ = server.Wait() // killed
		return err
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(err, end())
	}
	return strings.TrimSpace(line), end, nil
}

// ownAddress is one of this machine's, to which the kernel sends nothing over a wire.
func ownAddress() (string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, one := range all {
		if network, ok := one.(*net.IPNet); ok && network.IP.To4() != nil && !network.IP.IsLoopback() && !network.IP.IsLinkLocalUnicast() {
			return network.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no address but loopback")
}
