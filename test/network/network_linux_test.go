// Package network drives the true program against real servers: what a rule
// allows is reached by ordinary clients without proxy variables, and nothing
// else is, at once and with a reason.
//
// The whole test runs in a network namespace of its own, which has a loopback
// interface with some addresses and no way out, so that a leaking sandbox
// would do no harm. Start reading at [TestMain].
package network_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// The addresses of the servers, private ones, so that only a rule by address
// opens them.
const (
	address4 = "10.213.7.2"
	address6 = "fd00:213::2"
)

// inNamespace tells the second run of this test binary from the first.
const inNamespace = "LITTERBOX_TEST_NETWORK_NAMESPACE"

var built *program.Built

func TestMain(m *testing.M) {
	if os.Getenv(inNamespace) == "" {
		os.Exit(again())
	}
	if err := addresses(); err != nil {
		fmt.Fprintln(os.Stderr, "cannot set up the test's network namespace:", err)
		os.Exit(1)
	}
	os.Exit(program.Main(m, func(b *program.Built) { built = b }))
}

// again runs this binary in a network namespace of its own: as root in that
// alone, as an ordinary user in a user namespace too.
func again() int {
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	var exit *exec.ExitError
	switch err := cmd.Run(); {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "cannot make a network namespace for the test:", err)
		return 1
	}
	return 0
}

func addresses() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	for _, text := range []string{address4 + "/32", address6 + "/128"} {
		address, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		address.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(lo, address); err != nil {
			return err
		}
	}
	return nil
}

// server serves HTTP on a free port of address and counts its visitors.
type server struct {
	net.Listener
	visits atomic.Int64
}

func serve(t *testing.T, address string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: listener}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.visits.Add(1)
		_, _ = io.WriteString(w, "hello from outside\n")
	})}
	go func() { _ = web.Serve(listener) }()
	t.Cleanup(func() { _ = web.Close() })
	return s
}

func (s *server) url() string { return "http://" + s.Addr().String() + "/" }

// seen is what `litterbox network --json` prints about it.
type seen struct {
	Revision int
	Seen     []struct {
		Host, Addr, Verdict, Rule, Why, Process string
		Port                                    int
	}
}

func network(t *testing.T, h *program.Host) seen {
	t.Helper()
	var view seen
	if err := json.Unmarshal([]byte(h.Must("network", "box", "--json")), &view); err != nil {
		t.Fatal(err)
	}
	return view
}

func TestNothingGetsOutByDefault(t *testing.T) {
	h := built.New(t)
	s := serve(t, address4)
	h.Must("create", "box")
	if got := h.Shell("curl -sS -m 60 " + s.url()); got.Code != 0 {
		t.Fatalf("the server cannot be reached from outside either: %s", got.Stderr)
	}
	s.visits.Store(0)
	for _, probe := range []string{
		"curl -sS -m 90 " + s.url(),
		"curl -sS -m 90 http://127.0.0.1:" + portOf(s) + "/", // the host's loopback is not the sandbox's
		"curl -sS -m 90 http://name.example/",
		"curl -sS -m 90 --resolve name.example:" + portOf(s) + ":" + address4 + " http://name.example:" + portOf(s) + "/",
		"getent hosts name.example",
		"curl -sS -m 90 http://169.254.169.254/latest/meta-data/",
		"curl -sS -m 90 http://[::ffff:" + address4 + "]:" + portOf(s) + "/",
	} {
		// The time limit is far above the answer: a refusal is at once.
		if got := h.Inside("box", "timeout", "60", "sh", "-c", probe); got.Code == 0 || got.Code == 124 {
			t.Errorf("%s exited %d: %s", probe, got.Code, got.Stdout)
		}
	}
	if n := s.visits.Load(); n != 0 {
		t.Errorf("the server had %d visitors from a sandbox that may reach nothing", n)
	}
	view := network(t, h)
	found := false
	for _, attempt := range view.Seen {
		if attempt.Verdict != "denied" || attempt.Why == "" {
			t.Errorf("recorded as %+v", attempt)
		}
		found = found || attempt.Host == "name.example"
	}
	if !found {
		t.Errorf("the name that was asked for is not recorded: %+v", view.Seen)
	}
}

func portOf(s *server) string {
	_, port, _ := net.SplitHostPort(s.Addr().String())
	return port
}

func TestRulesHoldAtOnce(t *testing.T) {
	h := built.New(t)
	allowed, other := serve(t, address4), serve(t, address4)
	six := serve(t, address6)
	h.Must("create", "box")
	fetch := func(s *server) program.Result {
		return h.Inside("box", "curl", "-sS", "-m", "20", "-g", s.url())
	}
	h.Must("allow", "box", allowed.Addr().String(), six.Addr().String())
	for _, s := range []*server{allowed, six} {
		if got := fetch(s); got.Stdout != "hello from outside\n" {
			t.Errorf("%s was allowed: %d %s%s", s.url(), got.Code, got.Stdout, got.Stderr)
		}
	}
	if got := fetch(other); got.Code == 0 || other.visits.Load() != 0 {
		t.Errorf("%s was not allowed: %d %s", other.url(), got.Code, got.Stdout)
	}
	h.Must("deny", "box", address4)
	if got := fetch(allowed); got.Code == 0 {
		t.Errorf("%s was denied meanwhile: %s", allowed.url(), got.Stdout)
	}
	view := network(t, h)
	if view.Revision != 3 {
		t.Errorf("revision %d after two changes", view.Revision)
	}
	if !slices.ContainsFunc(view.Seen, func(a struct {
		Host, Addr, Verdict, Rule, Why, Process string
		Port                                    int
	}) bool {
		return a.Verdict == "allowed" && a.Rule == allowed.Addr().String() && strings.HasPrefix(a.Process, "curl (")
	}) {
		t.Errorf("no record of who reached %s by which rule: %+v", allowed.Addr(), view.Seen)
	}
	if tested := h.Must("network", "test", "box", other.Addr().String()); !strings.HasPrefix(tested, "denied: ") {
		t.Errorf("network test says %q", tested)
	}
	// A restart keeps the rules, and a killed keeper does not open them.
	h.Must("stop", "box")
	if got := fetch(other); got.Code == 0 || other.visits.Load() != 0 {
		t.Errorf("after a restart %s was reached", other.url())
	}
}

func TestRepositoryRulesNeedTrust(t *testing.T) {
	h := built.New(t)
	s := serve(t, address4)
	h.Put(h.Repo+"/.litterbox.toml", fmt.Sprintf("[network]\nallow = [%q]\n", s.Addr().String()))
	h.Must("create", "box")
	if got := h.Inside("box", "curl", "-sS", "-m", "20", s.url()); got.Code == 0 || s.visits.Load() != 0 {
		t.Errorf("a configuration that nobody trusted opened the network")
	}
	h.Must("trust")
	h.Must("create", "trusted")
	if got := h.Inside("trusted", "curl", "-sS", "-m", "20", s.url()); got.Code != 0 {
		t.Errorf("a trusted rule does not count: %s", got.Stderr)
	}
	h.Put(h.Repo+"/.litterbox.toml", "[network]\nallow = [\"*.*\"]\n")
	if got := h.Litterbox("create", "bad"); got.Code == 0 || !strings.Contains(got.Stderr, "line 2, column 10") {
		t.Errorf("a bad rule: %d %s", got.Code, got.Stderr)
	}
}

// A server that speaks first, and one that speaks TLS, on ports of their own.
func TestOtherProtocols(t *testing.T) {
	h := built.New(t)
	greeter, err := net.Listen("tcp", address4+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer greeter.Close()
	go func() {
		for {
			conn, err := greeter.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, "220 ready\r\n")
				line, _ := bufio.NewReader(conn).ReadString('\n')
				_, _ = io.WriteString(conn, "you said "+line)
			}()
		}
	}()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	if secure.Listener, err = net.Listen("tcp", address4+":0"); err != nil {
		t.Fatal(err)
	}
	secure.EnableHTTP2 = true
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	defer secure.Close()
	h.Must("create", "box")
	h.Must("allow", "box", greeter.Addr().String(), secure.Listener.Addr().String())
	script := `exec 3<>/dev/tcp/` + strings.Replace(greeter.Addr().String(), ":", "/", 1) + `; read -r hello <&3; echo "$hello"; echo "good day" >&3; cat <&3`
	if got := h.Inside("box", "bash", "-c", script); got.Stdout != "220 ready\r\nyou said good day\n" {
		t.Errorf("a server that speaks first: %d %q %s", got.Code, got.Stdout, got.Stderr)
	}
	if got := h.Inside("box", "curl", "-sSk", "-m", "20", "--http2", "https://"+secure.Listener.Addr().String()+"/"); got.Stdout != "HTTP/2.0" {
		t.Errorf("HTTP/2 over TLS: %d %q %s", got.Code, got.Stdout, got.Stderr)
	}
}

func TestServersInsideKeepTheirPorts(t *testing.T) {
	h := built.New(t)
	h.Must("create", "box")
	script := `
import socket
for port in (80, 443, 5432, 53):
    for host in ("127.0.0.1", "100.64.0.1"):
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", port)); s.listen()
        if port != 53 or host == "127.0.0.1":
            c = socket.create_connection((host, port), 30); a, _ = s.accept(); a.send(b"x"); assert c.recv(1) == b"x"
            a.close(); c.close()
        s.close()
print("kept")
`
	if got := h.Inside("box", "python3", "-c", script); got.Stdout != "kept\n" {
		t.Errorf("%d %s%s", got.Code, got.Stdout, got.Stderr)
	}
}
