// Package attack tries to get out of a sandbox, or to lead the host astray
// from within, in every way of which we know that it worked somewhere. It
// drives the true program on a host of its own (package program), as root and
// as an ordinary user alike.
//
// An attack never stands alone: its control does the same thing where nothing
// is in the way, and has to succeed. An attack that could not be seen to
// succeed would prove nothing.
//
// To add an attack: 1. an entry in the table of its file, with a control,
// 2. its row in docs/security.md. Start reading at [attacks].
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

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// built is set by TestMain before any test.
var built *program.Built

func TestMain(m *testing.M) {
	os.Exit(program.Main(m, func(b *program.Built) { built = b }, "test/attack/probe"))
}

// attack is one way out.
type attack struct {
	Name   string
	Threat string // what goes wrong when it works

	// Overlay says that it means nothing where a workspace is a copy.
	Overlay bool

	// Control does the same outside of any sandbox, and fails the test when
	// it does not succeed there.
	Control func(*world)
	// Run attacks from inside, and fails the test when it succeeds.
	Run func(*world)
}

// attacks is every attack.
func attacks() []attack {
	return slices.Concat(fileAttacks(), monitorAttacks(), stateAttacks(), ownerAttacks(), lockedAttacks(), processAttacks(), kernelAttacks(), networkAttacks(),
		gitAttacks(), historyAttacks(), plantAttacks(), resourceAttacks(), floodAttacks(), terminalAttacks(), bombAttacks(), quotaAttacks(),
		objectAttacks(),
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
	names := map[string]bool{}
	for _, a := range attacks() {
		if a.Name == "" || a.Threat == "" || a.Control == nil || a.Run == nil || names[a.Name] {
			t.Errorf("attack %q lacks something, or is there twice", a.Name)
		}
		names[a.Name] = true
	}
}

// box is the name of the sandbox that attacks.
const box = "attacker"

// world is a host with something to steal and something to touch.
type world struct {
	*program.Host
	Secret string // nobody may read it
	Canary string // a directory on the host; whoever writes there ran on the host
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
	w.Must("create", box)
}

// probeInside brings the probe into the sandbox and runs it.
func (w *world) probeInside(args ...string) program.Result {
	w.Helper()
	if w.Inside(box, "test", "-x", "/tmp/probe").Code != 0 {
		w.Must("cp", w.Program("probe"), box+":/tmp/probe")
	}
	return w.Inside(box, append([]string{"/tmp/probe"}, args...)...)
}

// probeOutside runs the probe on the host.
func (w *world) probeOutside(args ...string) program.Result {
	w.Helper()
	return w.Command(w.Repo, "env", append([]string{"PATIENCE=60s", w.Program("probe")}, args...)...)
}

// comes waits for what is sure to come beside us, and tells whether it came.
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

// wantUntouched fails when anything ran on the host.
func (w *world) wantUntouched(after string) {
	w.Helper()
	if names := w.touched(); len(names) > 0 {
		w.Errorf("%s ran code on the host: %q", after, names)
	}
}

// wantContent fails when a file of the host is not what it was.
func (w *world) wantContent(path, want string) {
	w.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		w.Errorf("%s on the host holds %q (%v), want %q", path, got, err, want)
	}
}

// wantNoSecret fails when the secret is anywhere in what a command printed.
func (w *world) wantNoSecret(what string, got program.Result) {
	w.Helper()
	if strings.Contains(got.Stdout+got.Stderr, w.Secret) {
		w.Errorf("%s shows the secret:\n%s%s", what, got.Stdout, got.Stderr)
	}
}

// wantSecret is the other way around, for controls.
func (w *world) wantSecret(what string, got program.Result) {
	w.Helper()
	if !strings.Contains(got.Stdout, w.Secret) {
		w.Fatalf("%s does not show the secret, so the attack could not be seen to succeed:\n%s%s", what, got.Stdout, got.Stderr)
	}
}
