package fake

import (
	"cmp"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// exec runs one of the built-in commands: those that the contract uses.
func (p *place) exec(command *wire.Exec, in *wire.Reader, out *wire.Writer) (wire.Exit, error) {
	if command == nil || len(command.Argv) == 0 {
		return wire.Exit{}, fault.New(fault.Invalid, "cannot run a command: none was given")
	}
	argv := make([]string, len(command.Argv))
	for i, arg := range command.Argv {
		argv[i] = string(arg)
	}
	started := time.Now()
	code, err := p.builtin(argv, &input{in: in}, frames{out, wire.KindStdout})
	if err != nil {
		_ = out.Frame(wire.KindStderr, []byte(argv[0]+": "+err.Error()+"\n"))
	}
	if err != nil && argv[0] == "cat" && p.driver.has(EndsWithItsWire) {
		p.end() // its client has gone
	}
	if p.driver.has(LosesExitCodes) {
		code = 0
	}
	return wire.Exit{Code: code, Duration: time.Since(started)}, nil
}

// frames is a stream of a command's output.
type frames struct {
	to   *wire.Writer
	kind wire.Kind
}

func (f frames) Write(p []byte) (int, error) { return len(p), f.to.Frame(f.kind, p) }

func (p *place) builtin(argv []string, stdin io.Reader, stdout io.Writer) (int, error) {
	line := func(text string) (int, error) {
		_, err := io.WriteString(stdout, text+"\n")
		return 0, err
	}
	switch strings.Join(argv, " ") {
	case "true":
		return 0, nil
	case "false":
		return 1, nil
	case "cat":
		_, err := io.CopyBuffer(stdout, stdin, make([]byte, 1<<10))
		return codeOf(err), err
	case "env":
		return line(p.environment())
	case "pwd":
		if p.driver.has(StandsElsewhere) {
			return line("/")
		}
		return line(p.spec.Workspace.Path)
	case "uname -n":
		if p.driver.has(HasAnotherName) {
			return line("localhost")
		}
		return line(p.spec.Name)
	case "id -u":
		if p.driver.has(RunsAsSomebodyElse) {
			return line("0")
		}
		return line(strconv.Itoa(p.spec.User.UID))
	case "uname -sm":
		return line(uname())
	case "cat /proc/self/status":
		capabilities := "0000000000000000"
		if p.driver.has(KeepsPrivileges) {
			capabilities = "00000000a80425fb"
		}
		return line("CapEff:\t" + capabilities + "\nNoNewPrivs:\t1\nSeccomp:\t2")
	case "sh -c ulimit -n":
		if p.spec.Limits.OpenFiles > 0 && !p.driver.has(StartsUnlimited) {
			return line(strconv.FormatInt(p.spec.Limits.OpenFiles, 10))
		}
		return line("1024")
	case "id -g":
		return line(strconv.Itoa(p.spec.User.GID))
	case "id -un":
		return line(p.spec.User.Name)
	}
	switch {
	case len(argv) == 3 && strings.Contains(argv[2], "/dev/tcp/127.0.0.1/"):
		if !p.driver.has(LetsOut) {
			return 1, errors.New("connection refused")
		}
		_, port, _ := strings.Cut(argv[2], "/dev/tcp/127.0.0.1/")
		port, _, _ = strings.Cut(port, "'")
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			err = conn.Close()
		}
		return codeOf(err), err
	case len(argv) == 3 && strings.Contains(argv[2], "/dev/tcp/"):
		return p.converse(argv[2], stdout)
	case argv[0] == "echo":
		return line(strings.Join(argv[1:], " "))
	case argv[0] == "rm" && len(argv) == 2:
		name := argv[1]
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.spec.Workspace.Path, name)
		}
		err := p.remove(name)
		return codeOf(err), err
	}
	return 127, errors.New("not found")
}

// uname is what uname -sm prints on the system that runs this.
func uname() string {
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return strings.ToUpper(runtime.GOOS[:1]) + runtime.GOOS[1:] + " " + cmp.Or(machine, runtime.GOARCH)
}

func codeOf(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

func (p *place) environment() string {
	lines := []string{"PWD=" + p.spec.Workspace.Path}
	for key, value := range p.spec.Env {
		lines = append(lines, key+"="+value)
	}
	if p.driver.has(LeaksEnvironment) {
		lines = append(lines, "AWS_SECRET_ACCESS_KEY=of the host")
	}
	return strings.Join(lines, "\n")
}
