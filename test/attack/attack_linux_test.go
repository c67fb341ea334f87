// Package attack tries to get out of a sandbox, or to lead the host astray
// from within, in every way that we know to have worked somewhere. It drives
// the true program on a host of its own (package program), as root and as an
// ordinary user alike.
//
// An attack never stands alone: its control does the same thing unhindered, and
// must succeed. An attack that could not be seen to succeed would prove nothing.
//
// Package threat says which attacks there are, and in which places they apply.
// To add one: 1. its row there, 2. an entry in a file here, with a control.
// Start reading at [attacks].
package attack_test

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// built is set by TestMain before any test.
var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }, "test/attack/probe"))
}

// attack is one way out.
type attack struct {
	Name string // of its row in package threat, perhaps with a variant after a colon

	// Control does the same outside any sandbox, and fails the test if it does
	// not succeed there.
	Control func(*world)
	// Run attacks from inside, and fails the test if it succeeds.
	Run func(*world)
}

// attacks is every attack.
func attacks() []attack {
	return slices.Concat(fileAttacks(), monitorAttacks(), stateAttacks(), ownerAttacks(), lockedAttacks(), processAttacks(), kernelAttacks(), networkAttacks(),
		gitAttacks(), historyAttacks(), plantAttacks(), layerAttacks(), packageAttacks(), askingAttacks(), resourceAttacks(), floodAttacks(), terminalAttacks(), bombAttacks(), quotaAttacks(),
		objectAttacks(), liveAttacks(), churnAttacks(),
		secretAttacks())
}

func TestAttacks(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.Name, func(t *testing.T) {
			t.Run("control", func(t *testing.T) { a.Control(newWorld(t)) })
			t.Run("attack", func(t *testing.T) { a.Run(newWorld(t)) })
		})
	}
}

func TestAttacksAreWhole(t *testing.T) {
	var names []string
	for _, a := range attacks() {
		if a.Name == "" || a.Control == nil || a.Run == nil || slices.Contains(names, a.Name) {
			t.Errorf("attack %q lacks something, or is there twice", a.Name)
		}
		names = append(names, a.Name)
	}
	if unknown, missing := threat.Uncovered(threat.Attacks, names); len(unknown)+len(missing) > 0 {
		t.Errorf("without a row in package threat: %q; rows that nothing here tries: %q", unknown, missing)
	}
}

// box is the name of the sandbox that attacks.
const box = "attacker"

// world is a host with something to steal and something to touch.
type world struct {
	*program.Host
	Place  threat.Place
	Secret string // no sandbox may read it
	Canary string // a directory on the host; a program that writes there ran on the host
}

func newWorld(t testing.TB) *world {
	w := &world{Host: built.New(t), Secret: "secret-" + rand.Text()}
	w.Canary = filepath.Join(w.Dir, "canary")
	if err := os.Mkdir(w.Canary, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.Canary, 0o777); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return w
}

// sandbox makes the attacking sandbox, with the probe in it.
func (w *world) sandbox() {
	w.Helper()
	w.Must(append([]string{"create", box}, w.creating()...)...)
}

// probeInside brings the probe into the sandbox and runs it.
func (w *world) probeInside(args ...string) program.Result {
	w.Helper()
	at := w.scratch() + "/probe"
	if w.Inside(box, "test", "-x", at).Code != 0 {
		w.Must("cp", w.Program("probe"), box+":"+at)
	}
	return w.Inside(box, append([]string{at}, args...)...)
}

// probeOutside runs the probe on the host.
func (w *world) probeOutside(args ...string) program.Result {
	w.Helper()
	return w.Command(w.Repo, "env", append([]string{"PATIENCE=60s", w.Program("probe")}, args...)...)
}

// comes waits for something that is sure to happen meanwhile, and reports
// whether it did.
func (w *world) comes(holds func() bool) bool {
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (w *world) await(what string, holds func() bool) {
	w.Helper()
	if !w.comes(holds) {
		w.Fatalf("it never came true that %s", what)
	}
}

// outcomes decodes what the probe prints.
func (w *world) outcomes(got program.Result) map[string]string {
	w.Helper()
	result := map[string]string{}
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil {
		w.Fatalf("the probe exited %d and printed no result: %v\n%s%s", got.Code, err, got.Stdout, got.Stderr)
	}
	return result
}

// touched lists what appeared in the canary directory.
func (w *world) touched() []string {
	w.Helper()
	entries, err := os.ReadDir(w.Canary)
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// wantUntouched fails if anything ran on the host.
func (w *world) wantUntouched(after string) {
	w.Helper()
	if names := w.touched(); len(names) > 0 {
		w.Errorf("%s ran code on the host: %q", after, names)
	}
}

// wantContent fails if a file of the host has changed.
func (w *world) wantContent(path, want string) {
	w.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		w.Errorf("%s on the host holds %q (%v), want %q", path, got, err, want)
	}
}

// wantNoSecret fails if the secret is anywhere in the output of a command.
func (w *world) wantNoSecret(what string, got program.Result) {
	w.Helper()
	if strings.Contains(got.Stdout+got.Stderr, w.Secret) {
		w.Errorf("%s shows the secret:\n%s%s", what, got.Stdout, got.Stderr)
	}
}

// wantSecret is the opposite, for controls.
func (w *world) wantSecret(what string, got program.Result) {
	w.Helper()
	if !strings.Contains(got.Stdout, w.Secret) {
		w.Fatalf("%s does not show the secret, so the attack could not be seen to succeed:\n%s%s", what, got.Stdout, got.Stderr)
	}
}
