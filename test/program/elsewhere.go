package program

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// ElsewhereVariable names the variable that holds an [Elsewhere], as JSON.
const ElsewhereVariable = "LITTERBOX_TEST_ELSEWHERE"

// Elsewhere is a machine started for suites that know nothing about engines and
// hosts. Its root file system has busybox and little more.
type Elsewhere struct {
	Name     string   // in the names of tests
	Env      []string // of every command
	Settings string   // of the user, in config.toml
	Machine  []string // arguments of machine add; empty if there is nothing to add
	// Enter is a shell command that runs its arguments in the machine, outside
	// every sandbox. STATE is the state directory of the host.
	Enter string
}

// Encode returns the environment entry that passes e to a suite.
func (e Elsewhere) Encode() (string, error) {
	data, err := json.Marshal(e)
	return ElsewhereVariable + "=" + string(data), err
}

// NeedElsewhere returns the machine of this run, and skips a test if none was started.
func NeedElsewhere(t testing.TB) Elsewhere {
	t.Helper()
	var e Elsewhere
	text := os.Getenv(ElsewhereVariable)
	if text == "" {
		t.Skip(ElsewhereVariable + " is not set: make test-engines and make test-machines set it")
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%s: %v", ElsewhereVariable, err)
	}
	return e
}

// Move makes the host create its sandboxes in a machine from now on. At the end
// of the test the machine has none of them left.
func (h *Host) Move(e Elsewhere) {
	h.Helper()
	h.far = &e
	h.Env = append(h.Env, e.Env...)
	h.Configure("")
	h.clear = []string{"prune", "--all", "--yes"}
	if len(e.Machine) > 0 {
		h.Must(append([]string{"machine", "add"}, e.Machine...)...)
		h.clear = []string{"machine", "remove", e.Machine[0]}
	}
}

// Anywhere is New, with sandboxes in the machine of this run if one was started.
func (b *Built) Anywhere(t testing.TB) *Host {
	t.Helper()
	h := b.New(t)
	if os.Getenv(ElsewhereVariable) != "" {
		h.Move(NeedElsewhere(t))
	}
	return h
}

// Far reports whether the host's sandboxes are in another machine.
func (h *Host) Far() bool { return h.far != nil }

// Configure writes the user's configuration, with what the machine needs before it.
func (h *Host) Configure(text string) {
	h.Helper()
	if h.Far() {
		text = h.far.Settings + text
	}
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), text)
}

// In runs a script in a machine, outside every sandbox.
func (h *Host) In(e Elsewhere, script string) (string, error) {
	cmd := exec.Command("sh", "-c", e.Enter+` sh -c "$1"`, "sh", script)
	cmd.Env = append(slices.Clone(h.Env), "STATE="+filepath.Join(h.State, "litterbox"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Suites runs tests of this module that take a machine, by the go command: a subtest
// for each package named, which is attack, posture, soak, service or crash.
// LITTERBOX_SOAK is how long random operations go on; LITTERBOX_TEST_CRASH=all kills
// at every step, and LITTERBOX_TEST_RUN chooses tests.
func Suites(t *testing.T, e Elsewhere, names ...string) {
	t.Helper()
	entry, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{"attack": "^TestAttacksInPlaces$/^machine$", "posture": "^TestPostureElsewhere$", "soak": "^TestSoak$"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("go", "test", "-v", "-count=1", "-timeout", "0", "-run", cmp.Or(os.Getenv("LITTERBOX_TEST_RUN"), tests[name], "."), "./test/"+name)
			cmd.Dir, cmd.Env = "../..", append(os.Environ(), entry)
			if os.Getenv("LITTERBOX_SOAK") == "" {
				cmd.Env = append(cmd.Env, "LITTERBOX_SOAK=1m", "LITTERBOX_SOAK_SANDBOXES=6")
			}
			if os.Getenv("LITTERBOX_TEST_CRASH") == "" {
				cmd.Env = append(cmd.Env, "LITTERBOX_TEST_CRASH=some")
			}
			cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
			if err := cmd.Run(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
