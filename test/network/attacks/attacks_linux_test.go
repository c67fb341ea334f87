// Package attacks tries to reach hosts that no rule allows, in every way that
// we know to have worked somewhere, and to wear the keeper down. It drives the
// true program in a world of the test's own (package world), so that traffic
// that gets through does no harm, and is counted where it arrives.
//
// A try never stands alone: the same script first runs on the machine itself,
// outside every sandbox, and must arrive there. And each sandbox may reach one
// host, which must work at the end: a dead network refuses everything, too.
//
// To add an attack: its row in package threat, and an entry in a file here. Start
// reading at [attack].
package attacks_test

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
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

// knock is the client that attackers use if no ordinary client is rude enough.
//
//go:embed testdata/knock.py
var knock string

// attack is one way out, in several spellings.
type attack struct {
	Name  string // of its row in package threat
	Needs []string
	Set   func(*testing.T, *program.Host) scene
}

// scene is an attack with its target in place.
type scene struct {
	Allow, Deny []string
	Open        bool // default = "allow"
	// Tries are scripts. Each must arrive from outside, and must not from
	// inside; it may print and exit as it likes. From outside, where PATIENCE
	// is set, it may wait that many seconds for what is sure to come.
	Tries []string
	// Arrived counts what reached the target so far.
	Arrived func() int64
	// Says is what a try that got through prints, if arriving is not enough.
	Says string
	// Patient is for programs that do not take no for an answer: they may run
	// into the time limit, which is otherwise a refusal that hangs.
	Patient bool
}

func attacks() []attack {
	return slices.Concat(spellingAttacks(), agreementAttacks(), protocolAttacks(), addressAttacks(), nearAttacks(), hiddenAttacks(), resolverAttacks(), tunnelAttacks())
}

func TestAttacks(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			world.Need(t, append(a.Needs, "python3", "curl")...)
			h := built.New(t)
			h.Put(h.Repo+"/knock.py", knock)
			s := a.Set(t, h)
			friend, visits := friendly(t, a.Name)
			s.Allow = append(s.Allow, friend+":80")
			configure(h, s)
			h.Must("create", "box")
			for _, try := range s.Tries {
				before := s.Arrived()
				got := h.Shell("PATIENCE=60 PATH=/usr/bin:$PATH timeout 100 sh -ec '" + strings.ReplaceAll(try, "'", `'\''`) + "'")
				if !s.arrives(before) || !strings.Contains(got.Stdout, s.Says) {
					t.Errorf("control: from outside it did not get through: %s\nexit %d: %s%s", try, got.Code, got.Stdout, got.Stderr)
				}
				before = s.settled()
				got = h.Inside("box", "timeout", "20", "sh", "-ec", try)
				if s.Arrived() != before || s.Says != "" && strings.Contains(got.Stdout, s.Says) {
					t.Errorf("from inside it got through: %s\nexit %d: %s%s", try, got.Code, got.Stdout, got.Stderr)
				}
				if got.Code == 124 && !s.Patient {
					t.Errorf("refused, but it hung: %s", try)
				}
			}
			if got := h.Inside("box", "curl", "-sS", "-m", "20", "http://"+friend+"/"); got.Code != 0 || visits.n.Load() == 0 {
				t.Errorf("afterwards an allowed host was out of reach: %s\n%s", got.Stderr, h.Must("network", "box"))
			}
		})
	}
}

// arrives waits until the target has counted more than before: the sender of a
// datagram may have ended before it is read.
func (s scene) arrives(before int64) bool {
	for deadline := time.Now().Add(time.Minute); s.Arrived() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// settled returns what reached the target once the last of it is counted: a
// program that has ended may have left datagrams on their way.
func (s scene) settled() int64 {
	const quiet = 15 // looks in a row at which nothing came
	before := s.Arrived()
	for still := 0; still < quiet; still++ {
		time.Sleep(20 * time.Millisecond)
		if now := s.Arrived(); now != before {
			before, still = now, 0
		}
	}
	return before
}

// configure writes the rules of a scene as the user's own.
func configure(h *program.Host, s scene) {
	text := "[network]\n"
	if s.Open {
		text += "default = \"allow\"\n"
	}
	list := func(rules []string) string {
		var quoted []string
		for _, rule := range rules {
			quoted = append(quoted, fmt.Sprintf("%q", rule))
		}
		return "[" + strings.Join(quoted, ", ") + "]\n"
	}
	text += "allow = " + list(s.Allow) + "deny = " + list(s.Deny)
	h.Put(h.Home+"/.config/litterbox/config.toml", text)
	h.Git("add", ".")
	h.Git("commit", "--quiet", "-m", "tools")
}

// friendly is a host that a sandbox may reach.
func friendly(t *testing.T, name string) (string, *target) {
	h := outside.Host("friend-of-" + strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".example")
	visits := &target{}
	h.Serve(t, 80, visits.web)
	return h.Name, visits
}

func TestAttacksAreWhole(t *testing.T) {
	var names []string
	for _, a := range attacks() {
		if a.Name == "" || a.Set == nil || slices.Contains(names, a.Name) {
			t.Errorf("attack %q lacks something, or is there twice", a.Name)
		}
		names = append(names, a.Name)
	}
	if unknown, missing := threat.Uncovered(threat.Network, names); len(unknown)+len(missing) > 0 {
		t.Errorf("without a row in package threat: %q; rows that nothing here tries: %q", unknown, missing)
	}
}

// run is a knock with its arguments quoted for the shell.
func run(args ...string) string {
	script := "python3 knock.py"
	for _, arg := range args {
		script += " '" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return script
}
