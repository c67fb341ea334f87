// Package clients shows that what a rule allows works for the programs that
// people use: real servers in a world of the test's own, ordinary clients in a
// sandbox, no proxy variables.
//
// Every client first finds the door closed and then, by the narrowest rule
// that its purpose needs, open. Start reading at [TestClients]; package
// managers with their presets are in [TestPresets].
package clients_test

import (
	"os"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/network/world"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// Both are set by TestMain before any test.
var (
	built   *program.Built
	outside *world.World
)

func TestMain(m *testing.M) {
	os.Exit(world.Main(m, func(b *program.Built, w *world.World) { built, outside = b, w }))
}

// client is one program in a sandbox and its server.
type client struct {
	Name  string
	Needs []string // programs
	// Serve starts the server and gives the rules that the client needs and
	// the script that it runs, with the certificates of the world in ca.pem.
	Serve func(*testing.T) (rules []string, script string)
	Want  string // what the script prints
}

func clients() []client {
	var all []client
	for _, some := range [][]client{webClients(), streamClients(), loginClients(), databaseClients()} {
		all = append(all, some...)
	}
	return all
}

func TestClients(t *testing.T) {
	for _, c := range clients() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			world.Need(t, c.Needs...)
			h := newHost(t)
			rules, script := c.Serve(t)
			h.Must("create", "box")
			if got := h.Inside("box", "sh", "-ec", script); got.Code == 0 || strings.Contains(got.Stdout, c.Want) {
				t.Errorf("without a rule it exited %d: %s", got.Code, got.Stdout)
			}
			h.Must(append([]string{"allow", "box"}, rules...)...)
			if got := h.Inside("box", "sh", "-ec", script); got.Code != 0 || strings.TrimSpace(got.Stdout) != c.Want {
				t.Errorf("with %q it exited %d and printed %q, want %q\n%s\n%s", rules, got.Code, got.Stdout, c.Want, got.Stderr, h.Must("network", "box"))
			}
		})
	}
}

// newHost is a machine whose repository holds the world's authority.
func newHost(t *testing.T) *program.Host {
	t.Helper()
	h := built.New(t)
	ca, err := os.ReadFile(outside.CA)
	if err != nil {
		t.Fatal(err)
	}
	h.Put(h.Repo+"/ca.pem", string(ca))
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "the authority")
	return h
}

func TestNoProxyVariables(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.Must("create", "box")
	if got := h.Inside("box", "sh", "-c", "env | grep -i '_proxy='; ls /sys/class/net 2>/dev/null || sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' '"); got.Stdout != "lo\n" {
		t.Errorf("inside there is more than a loopback interface: %q", got.Stdout)
	}
}
