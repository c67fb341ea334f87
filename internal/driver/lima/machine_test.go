package lima_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// limactl stands in for the program: it keeps an instance's state in a file, and
// lists its calls.
const limactlScript = `#!/bin/sh
dir=$LIMA_HOME
shift 2
case $1 in list) ;; *) echo "$*" >>"$dir/calls" ;; esac
state=$(cat "$dir/state" 2>/dev/null)
say() { echo "{\"level\":\"fatal\",\"msg\":\"$1\"}" >&2; exit 1; }
if test -e "$dir/fail-$1"; then say "$(cat "$dir/fail-$1")"; fi
case $1 in
list) test -z "$state" || sed "s/STATE/$state/" "$dir/listed" ;;
validate) ;;
create) mkdir -p "$dir/litterbox"; echo Stopped >"$dir/state"; cp "$3" "$dir/template" ;;
start) echo Running >"$dir/state"; : >"$dir/litterbox/ssh.config" ;;
stop) echo Stopped >"$dir/state" ;;
delete) rm -rf "$dir/litterbox" "$dir/state" ;;
*) say "unknown command" ;;
esac
`

// sshScript stands in for ssh: it runs the script here, below a directory of the
// test's.
const sshScript = `#!/bin/sh
test "$(cat "$LIMA_HOME/state")" = Running || { echo 'ssh: connect to host 127.0.0.1 port 1: Connection refused' >&2; exit 255; }
while test "$1" != --; do shift; done
shift 2
exec sh -c "$(echo "$*" | sed "s#/var/lib/litterbox#$LIMA_HOME/there#g; s#^exec sudo -n --#exec#")"
`

type world struct {
	home    string // of Lima
	options lima.Options
	machine lima.Machine
}

func newWorld(t *testing.T) world {
	t.Helper()
	dir := t.TempDir()
	w := world{home: filepath.Join(dir, "lima")}
	bin := filepath.Join(dir, "bin")
	for _, made := range []string{w.home, bin, filepath.Join(w.home, "there")} {
		if err := os.MkdirAll(made, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, "listed", fmt.Sprintf(`{"name":"litterbox","status":"STATE","dir":"%s/litterbox","config":{"plain":true}}`+"\n", w.home))
	for name, script := range map[string]string{"limactl": limactlScript, "ssh": sshScript} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	const program = "#!/bin/sh\necho this is the outpost: $*; cat\n"
	w.options = lima.Options{
		Env:      []string{"PATH=" + os.Getenv("PATH"), "LIMA_HOME=" + w.home},
		Override: filepath.Join(dir, "lima.yaml"),
		Outpost: func(string, string) (remote.Program, error) {
			return remote.Program{
				ID:   fmt.Sprintf("%x", sha256.Sum256([]byte(program))),
				Size: int64(len(program)),
				Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(program)), nil },
			}, nil
		},
	}
	w.machine = lima.At(filepath.Join(dir, "state"), w.options)
	return w
}

func (w world) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// calls returns the verbs that limactl was called with since the last time.
func (w world) calls(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.home, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(w.home, "calls")) // there may be none
	calls := []string{}
	for line := range strings.Lines(string(data)) {
		verb, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		calls = append(calls, verb)
	}
	return calls
}

// A missing machine is made, a stopped one started, a broken one repaired, and
// a running one left alone.
func TestEnsure(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		state string // "" leaves it
		calls []string
	}{
		{"", []string{"validate", "create", "start"}},
		{"", []string{}},
		{"Stopped", []string{"start"}},
		{"Broken", []string{"stop", "start"}},
		{"Uninitialized", []string{"start"}},
	} {
		if step.state != "" {
			w.write(t, "state", step.state+"\n")
		}
		if err := w.machine.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.calls, w.calls(t)); diff != "" {
			t.Errorf("%q: %s", step.state, diff)
		}
	}
	w.write(t, "state", "Paused\n")
	if err := w.machine.Ensure(t.Context()); !errors.Is(err, driver.ErrUnreachable) || !strings.Contains(fault.HintOf(err), "machine recreate") {
		t.Errorf("%v", err)
	}
}

// Only waking or making a machine starts it: a stream into a stopped one says
// that its places are gone.
func TestDial(t *testing.T) {
	w := newWorld(t)
	if _, err := w.machine.Dial(t.Context()); !errors.Is(err, driver.ErrMachineLost) {
		t.Errorf("there is none: %v", err)
	}
	if err := w.machine.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.calls(t)
	dial := func() {
		t.Helper()
		conn, err := w.machine.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const want = "this is the outpost: outpost\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
		if _, err := conn.Write([]byte("echo\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, got[:5]); err != nil || string(got[:5]) != "echo\n" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	dial()
	dial()
	w.write(t, "state", "Stopped\n")
	if _, err := w.machine.Dial(t.Context()); !errors.Is(err, driver.ErrMachineLost) {
		t.Errorf("it is stopped: %v", err)
	}
	w.write(t, "state", "Broken\n")
	if _, err := w.machine.Dial(t.Context()); !errors.Is(err, driver.ErrUnreachable) {
		t.Errorf("it is broken: %v", err)
	}
	if diff := cmp.Diff([]string{}, w.calls(t)); diff != "" {
		t.Error(diff)
	}
	if err := w.machine.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}
	dial()
}

// Sharing anything of the host is refused, no matter who asked Lima for it.
func TestSharedIsRefused(t *testing.T) {
	w := newWorld(t)
	if err := w.machine.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]string{
		"not plain":     `{"plain":false}`,
		"a mount":       `{"plain":true,"mounts":[{"location":"/home/a","mountPoint":"/home/a"}]}`,
		"a port":        `{"plain":true,"portForwards":[{"guestPortRange":[80,80],"hostPortRange":[80,80],"static":true}]}`,
		"the ssh-agent": `{"plain":true,"ssh":{"forwardAgent":true}}`,
		"a network":     `{"plain":true,"networks":[{"lima":"shared"}]}`,
	} {
		w.write(t, "listed", fmt.Sprintf(`{"name":"litterbox","status":"STATE","dir":"%s/litterbox","config":%s}`+"\n", w.home, config))
		w.write(t, "state", "Stopped\n")
		w.calls(t)
		if err := w.machine.Ensure(t.Context()); fault.KindOf(err) != fault.Denied {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{}, w.calls(t)); diff != "" {
			t.Errorf("%s: it was started: %s", name, diff)
		}
	}
}

// The configuration is given to Lima, with the human's own file below the
// settings that keep the host apart.
func TestTemplate(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.options.Override, []byte("cpus: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.machine.Configure(machine.VMSettings{CPUs: 3, Memory: "2GiB", Type: "qemu", Image: "ubuntu-24.04", IdleStop: 30 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	if err := w.machine.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(w.home, "template"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Plain                bool
		Mounts, PortForwards []any
		CPUs                 int
		Memory, Disk, VMType string
		SSH                  map[string]bool
		Base                 []string
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if !got.Plain || len(got.Mounts)+len(got.PortForwards) != 0 || got.CPUs != 3 || got.Memory != "2GiB" || got.Disk != "" || got.VMType != "qemu" || got.SSH["forwardAgent"] {
		t.Errorf("%s", data)
	}
	if len(got.Base) != 2 || got.Base[0] != w.options.Override {
		t.Fatalf("%q", got.Base)
	}
	defaults, err := os.ReadFile(got.Base[1])
	if err != nil || !strings.Contains(string(defaults), "template:_images/ubuntu-24.04") || !strings.Contains(string(defaults), `"disk": "30GiB"`) {
		t.Errorf("%s, %v", defaults, err)
	}
}

// A machine's contents are only removed when the new one can be made.
func TestRecreate(t *testing.T) {
	w := newWorld(t)
	if err := w.machine.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.calls(t)
	w.write(t, "fail-validate", "failed to validate YAML file")
	if err := w.machine.Recreate(t.Context(), nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"validate"}, w.calls(t)); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(filepath.Join(w.home, "fail-validate")); err != nil {
		t.Fatal(err)
	}
	if err := w.machine.Recreate(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"validate", "delete", "validate", "create", "start"}, w.calls(t)); diff != "" {
		t.Error(diff)
	}
}

// Errors of limactl become those that a driver may return.
func TestSealed(t *testing.T) {
	for said, want := range map[string]error{
		"write /x: no space left on device": driver.ErrDiskFull,
		"must not run as the root user":     driver.ErrUnsupported,
	} {
		w := newWorld(t)
		w.write(t, "fail-list", said)
		for name, do := range map[string]func(context.Context) error{
			"ensure": w.machine.Ensure,
			"wake":   w.machine.Wake,
			"dial":   func(ctx context.Context) error { _, err := w.machine.Dial(ctx); return err },
		} {
			if err := do(t.Context()); !errors.Is(err, want) {
				t.Errorf("%s: %s: %v", said, name, err)
			}
		}
	}
}
