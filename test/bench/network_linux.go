package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
)

// bed is what world needs from a test.
type bed struct {
	testing.TB
	ends []func()
}

func (*bed) Helper()                             {}
func (b *bed) Cleanup(f func())                  { b.ends = append(b.ends, f) }
func (*bed) Error(args ...any)                   { fmt.Fprintln(os.Stderr, append([]any{"bench:"}, args...)...) }
func (b *bed) Errorf(format string, args ...any) { b.Error(fmt.Sprintf(format, args...)) }
func (*bed) Fatal(args ...any)                   { panic(fmt.Sprint(args...)) }
func (*bed) Fatalf(format string, args ...any)   { panic(fmt.Sprintf(format, args...)) }

// end undoes what was prepared, the last first.
func (b *bed) end() {
	for _, f := range slices.Backward(b.ends) {
		f()
	}
}

// network measures the way out.
func (b *bench) network() error { return b.again("network") }

// again measures a part in a world of its own, as the tests of the network do:
// this program starts again there.
func (b *bench) again(part string) error {
	found := filepath.Join(b.dir, part+".json")
	cmd := exec.Command("/proc/self/exe", "-network", "-only", part, "-litterbox", b.litterbox, "-rows", found, "-rounds", strconv.Itoa(b.rounds))
	if b.small {
		cmd.Args = append(cmd.Args, "-small")
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}
	return b.report.load(found)
}

// way is one way from a client to the server.
type way struct {
	name string
	// start runs the client with args; it has no output before it is ready.
	start func(args ...string) *exec.Cmd
	named bool // the client looks the name up; otherwise it has the address
	load  load
}

// inWorld is the second run of this program.
func (b *bench) inWorld() (code int, err error) {
	code, again := world.Enter()
	if !again {
		return code, nil
	}
	w, err := world.New()
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(w.Dir)
	if slices.Contains(b.only, "agents") {
		err = b.agentsIn(w)
	} else {
		err = b.networkIn(w)
	}
	if err != nil {
		return 1, err
	}
	if b.rows == "" {
		return 0, nil
	}
	return 0, b.report.save(b.rows)
}

// networkIn measures the way out, in its world.
func (b *bench) networkIn(w *world.World) (err error) {
	host := w.Host("server.bench.example")
	if err := serveLoad(w, host); err != nil {
		return err
	}
	repo := filepath.Join(b.dir, "network")
	if err := errors.Join(os.Chmod(b.dir, 0o755), os.Mkdir(repo, 0o755)); err != nil {
		return err
	}
	program := filepath.Join(b.dir, "client")
	if data, err := os.ReadFile("/proc/self/exe"); err != nil {
		return err
	} else if err := os.WriteFile(program, data, 0o755); err != nil {
		return err
	}
	if err := b.fill(repo, 1); err != nil {
		return err
	}
	litterbox := func(args ...string) error { return b.command(repo, append([]string{b.litterbox}, args...)...) }
	if err := litterbox("create", "box"); err != nil {
		return err
	}
	defer func() { err = join(err, litterbox("delete", "--force", "box")) }()
	idle := b.pss("box")
	if err := join(litterbox("cp", program, "box:/tmp/client"), litterbox("allow", "box", host.Name, host.Name+":9001", host.Name+":9002", host.Name+":9003")); err != nil {
		return err
	}
	ways := b.ways(repo, program)
	// In turns, and the best of each: the load of the machine changes.
	for range 3 {
		for i := range ways {
			if err := ways[i].measure(host, "latency"); err != nil {
				fmt.Fprintf(os.Stderr, "bench: %s: %v\n", ways[i].name, err)
				ways[i].start = nil
			}
		}
	}
	used := b.pss("box")
	crowded := 0
	for i := range ways {
		hold := func() {
			if i == 0 {
				crowded = b.pss("box")
			}
		}
		if err := ways[i].crowd(host, hold); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", ways[i].name, err)
		}
	}
	b.compareWays(ways)
	mb := func(kib int) measure { return measure{Value: float64(kib) / 1024, Unit: megabytes} }
	const what, unused = "memory of keeper and guest (PSS)", "before the network was used"
	b.report.add(row{What: what, Where: "after all of these connections", Here: mb(used), Beside: unused, There: mb(idle)})
	b.report.add(row{What: what, Where: fmt.Sprintf("with %d connections open", ways[0].load.Crowded), Here: mb(crowded), Beside: unused, There: mb(idle)})
	return nil
}

// serveLoad starts the servers that the clients load.
func serveLoad(w *world.World, host *world.Host) error {
	t := &bed{}
	host.Serve(t, echoPort, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	host.Serve(t, giverPort, func(conn net.Conn) { _ = give(conn) })
	host.Serve(t, takerPort, func(conn net.Conn) {
		if _, err := io.CopyN(io.Discard, onlyReader{conn}, volume); err == nil {
			_, _ = conn.Write([]byte("!"))
		}
	})
	certificate, err := w.Certificate(host.Name)
	if err != nil {
		return err
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a small page\n") })
	server := &http.Server{Handler: page, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}}
	for _, listener := range host.Listen(t, 80) {
		go func() { _ = server.Serve(listener) }()
	}
	for _, listener := range host.Listen(t, 443) {
		go func() { _ = server.ServeTLS(listener, "", "") }()
	}
	return nil
}

// ways returns litterbox, the machine itself, and what others put in between.
func (b *bench) ways(repo, program string) []way {
	run := func(dir string, argv ...string) func(args ...string) *exec.Cmd {
		return func(args ...string) *exec.Cmd {
			cmd := exec.Command(argv[0], append(argv[1:], args...)...)
			cmd.Dir, cmd.Env = dir, b.env
			return cmd
		}
	}
	ways := []way{
		{name: "litterbox", named: true, start: run(repo, b.litterbox, "exec", "box", "--no-commit", "--", "/tmp/client", loadWord)},
		{name: direct, start: run(b.dir, program, loadWord)},
	}
	if _, err := exec.LookPath("slirp4netns"); err == nil {
		// The client waits in a namespace until the helper says that it is ready.
		script := `exec 4<&0; unshare "$@" & pid=$!; trap 'kill $helper' EXIT
until [ "$(readlink /proc/$pid/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
slirp4netns --configure --mtu=65520 --disable-host-loopback --ready-fd=3 $pid tap0 3>"$0" >/dev/null 2>&1 & helper=$!
wait $pid`
		ready := filepath.Join(b.dir, "ready")
		flags := []string{"--net"}
		if os.Geteuid() != 0 {
			flags = append(flags, "--user", "--map-root-user")
		}
		wait := `until [ -s "` + ready + `" ]; do sleep 0.01; done; exec "$0" "$@" <&4`
		argv := append(append([]string{"sh", "-c", script, ready}, flags...), "sh", "-c", wait, program, loadWord)
		start := run(b.dir, argv...)
		ways = append(ways, way{name: "slirp4netns", start: func(args ...string) *exec.Cmd {
			_ = os.Remove(ready) // from the run before
			return start(args...)
		}})
	}
	if _, err := exec.LookPath("pasta"); err == nil {
		argv := []string{"pasta", "--config-net", "--quiet", "--", program, loadWord}
		if os.Geteuid() == 0 {
			argv = slices.Insert(argv, 1, "--runas", "0") // or it becomes the user nobody, who may not map ids in here
		}
		ways = append(ways, way{name: "pasta", start: run(b.dir, argv...)})
	}
	return ways
}

func (w *way) args(host *world.Host, part string) []string {
	if w.named {
		return []string{host.Name, "", part}
	}
	return []string{host.Name, host.V4.String(), part}
}

// measure runs the client once and keeps the best results.
func (w *way) measure(host *world.Host, part string) error {
	if w.start == nil {
		return nil
	}
	cmd := w.start(w.args(host, part)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stop := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop.Stop()
	var output, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &output, &problem, 5*time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, problem.String())
	}
	var l load
	if err := json.Unmarshal(output.Bytes(), &l); err != nil {
		return fmt.Errorf("%w: %s%s", err, output.String(), problem.String())
	}
	if problem.Len() > 0 {
		fmt.Fprintf(os.Stderr, "bench: %s: %s", w.name, problem.String())
	}
	least := func(have *time.Duration, got time.Duration) {
		if *have == 0 || got != 0 && got < *have {
			*have = got
		}
	}
	least(&w.load.Connect, l.Connect)
	least(&w.load.Request, l.Request)
	least(&w.load.RequestTLS, l.RequestTLS)
	least(&w.load.Again, l.Again)
	least(&w.load.AgainTLS, l.AgainTLS)
	w.load.Down, w.load.Up = max(w.load.Down, l.Down), max(w.load.Up, l.Up)
	return nil
}

// crowd holds a thousand connections open for the time of hold.
func (w *way) crowd(host *world.Host, hold func()) error {
	if w.start == nil {
		return nil
	}
	cmd := w.start(w.args(host, "crowd")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr, cmd.WaitDelay = os.Stderr, 5*time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop.Stop()
	var l load
	err = json.NewDecoder(output).Decode(&l)
	if err == nil {
		w.load.Crowd, w.load.Crowded = l.Crowd, l.Crowded
		hold()
	}
	return join(err, input.Close(), cmd.Wait())
}

// compareWays adds the rows: litterbox beside each of the others.
func (b *bench) compareWays(ways []way) {
	add := func(what string, of func(load) float64, unit string) {
		for _, other := range ways[1:] {
			if there := of(other.load); there != 0 { // otherwise it is missing, or it failed and was reported
				b.report.add(row{What: what, Here: measure{Value: of(ways[0].load), Unit: unit}, Beside: other.name, There: measure{Value: there, Unit: unit}})
			}
		}
	}
	latency := func(what string, of func(load) time.Duration) {
		add(what, func(l load) float64 { return of(l).Seconds() }, seconds)
	}
	latency("a connection and one byte there and back", func(l load) time.Duration { return l.Connect })
	latency("an HTTP request on a connection of its own", func(l load) time.Duration { return l.Request })
	latency("an HTTPS request on a connection of its own", func(l load) time.Duration { return l.RequestTLS })
	latency("an HTTP request on a connection that is kept", func(l load) time.Duration { return l.Again })
	latency("an HTTPS request on a connection that is kept", func(l load) time.Duration { return l.AgainTLS })
	latency(strconv.Itoa(crowdSize)+" connections at once", func(l load) time.Duration { return l.Crowd })
	add("one stream into the sandbox", func(l load) float64 { return l.Down / 1e9 }, gigabits)
	add("one stream out of the sandbox", func(l load) float64 { return l.Up / 1e9 }, gigabits)
	for _, w := range ways {
		if w.start != nil && w.load.Crowded != crowdSize {
			b.report.missing("connections at once with %s: only %d of %d held", w.name, w.load.Crowded, crowdSize)
		}
	}
}

// pss returns the memory of a sandbox's keeper and its children, in kB.
func (b *bench) pss(name string) int {
	found, err := filepath.Glob(filepath.Join(b.dir, "state/litterbox/sandboxes", name+"-*", "lease.json"))
	if err != nil || len(found) != 1 {
		return 0
	}
	held, err := readLease(found[0])
	if err != nil {
		return 0
	}
	total := 0
	for _, pid := range append(children(held.keeper.PID), held.keeper.PID) {
		kib, _ := proportional(pid) // a process that we may not read does not count
		total += kib
	}
	return total
}
