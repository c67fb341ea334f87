package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// manyScript stands in for limactl with many instances: each is a directory with its
// state in a file.
const manyScript = `#!/bin/sh
dir=$LIMA_HOME
shift 2
for last; do :; done
case $1 in list) ;; *) echo "$*" | sed 's# /.*##' >>"$dir/calls" ;; esac
say() { echo "{\"level\":\"fatal\",\"msg\":\"$1\"}" >&2; exit 1; }
case $1 in
list) for one in "$dir"/*/state; do
	test -e "$one" || continue
	at=$(dirname "$one")
	echo "{\"name\":\"$(basename "$at")\",\"status\":\"$(cat "$one")\",\"dir\":\"$at\",\"cpus\":2,\"memory\":1073741824,\"config\":{\"plain\":true}}"
done ;;
validate) ;;
create) name=${2#--name=}; mkdir "$dir/$name"; echo Stopped >"$dir/$name/state" ;;
clone)
	test "$(cat "$dir/$3/state")" = Stopped || say "cannot clone a running instance"
	mkdir "$dir/$4" || say "instance already exists"
	if test -e "$dir/full"; then echo Broken >"$dir/$4/state"; say "no space left on device"; fi
	cp -r "$dir/$3/." "$dir/$4" ;;
edit) ;;
start) test ! -e "$dir/dead" || say "did not receive an event with the running status"
	echo Running >"$dir/$last/state"; : >"$dir/$last/ssh.config" ;;
stop) echo Stopped >"$dir/$last/state" ;;
delete) rm -rf "$dir/$last" ;;
*) say "unknown command" ;;
esac
`

const manySSH = `#!/bin/sh
while test "$1" != --; do shift; done
shift 2
exec sh -c "$(echo "$*" | sed "s#/var/lib/litterbox#$LIMA_HOME/../there#g; s#^exec sudo -n --#exec#")"
`

// newOwnWorld is a world for machines of single sandboxes, and the state directory of
// one.
func newOwnWorld(t *testing.T) (w world, root, stateDir string) {
	t.Helper()
	w = newWorld(t)
	for _, name := range []string{"listed", "there"} {
		if err := os.RemoveAll(filepath.Join(w.home, name)); err != nil {
			t.Fatal(err)
		}
	}
	base := filepath.Dir(w.home)
	for name, script := range map[string]string{"limactl": manyScript, "ssh": manySSH} {
		if err := os.WriteFile(filepath.Join(base, "bin", name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root = filepath.Join(base, "state")
	stateDir = filepath.Join(root, "sandboxes", "fix-login-0123abcd")
	for _, dir := range []string{stateDir, filepath.Join(base, "there")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w, root, stateDir
}

// lines returns the calls of limactl since the last time, with their arguments.
func (w world) lines(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.home, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(w.home, "calls")) // there may be none
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func ensure(t *testing.T, m lima.Machine) {
	t.Helper()
	if err := m.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

const ownName = "litterbox-fix-login-0123abcd"

// The first machine makes the golden, which boots once; the next ones are copies of
// it. A stopped one starts, and nothing is copied twice.
func TestOwnIsACopy(t *testing.T) {
	w, _, stateDir := newOwnWorld(t)
	one := lima.Own(stateDir, w.options)
	ensure(t, one)
	if diff := cmp.Diff([]string{
		"validate --fill", "create --name=litterbox-golden", "start --timeout=15m0s litterbox-golden", "stop litterbox-golden",
		"clone --start=false litterbox-golden " + ownName, "start --timeout=15m0s " + ownName,
	}, w.lines(t)); diff != "" {
		t.Error(diff)
	}
	ensure(t, one)
	if diff := cmp.Diff([]string{""}, w.lines(t)); diff != "" {
		t.Error(diff)
	}
	w.write(t, ownName+"/state", "Stopped\n")
	ensure(t, one)
	if diff := cmp.Diff([]string{"start --timeout=15m0s " + ownName}, w.lines(t)); diff != "" {
		t.Error(diff)
	}
	other := lima.Own(filepath.Join(filepath.Dir(stateDir), "other-00000000"), w.options)
	ensure(t, other)
	if diff := cmp.Diff([]string{"clone --start=false litterbox-golden litterbox-other-00000000", "start --timeout=15m0s litterbox-other-00000000"}, w.lines(t)); diff != "" {
		t.Error(diff)
	}
}

// A golden is made again when it was never finished, and when another one would be
// made now. Memory and processors are given to the copies.
func TestGoldenIsMadeAnew(t *testing.T) {
	w, root, stateDir := newOwnWorld(t)
	ensure(t, lima.Own(stateDir, w.options))
	shared := lima.At(root, w.options)
	for i, step := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"it was started", func() { w.write(t, lima.Golden+"/state", "Running\n") }, []string{"stop", "clone", "start"}},
		{"more memory", func() {
			if err := shared.Configure(machine.VMSettings{CPUs: 3, Memory: "2GiB"}); err != nil {
				t.Fatal(err)
			}
		}, []string{"clone", "edit", "start"}},
		{"another image", func() {
			if err := shared.Configure(machine.VMSettings{Image: "ubuntu-24.04"}); err != nil {
				t.Fatal(err)
			}
		}, []string{"delete", "validate", "create", "start", "stop", "clone", "start"}},
		{"other settings of the human's", func() {
			if err := os.WriteFile(w.options.Override, []byte("cpus: 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"delete", "validate", "create", "start", "stop", "clone", "start"}},
		{"it is not whole", func() {
			if err := os.Remove(filepath.Join(w.home, lima.Golden, "litterbox-golden")); err != nil {
				t.Fatal(err)
			}
		}, []string{"delete", "validate", "create", "start", "stop", "clone", "start"}},
	} {
		w.calls(t)
		step.change()
		ensure(t, lima.Own(filepath.Join(root, "sandboxes", "n"+string(rune('a'+i))+"-00000000"), w.options))
		if diff := cmp.Diff(step.want, w.calls(t)); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// A golden that does not come up does not go on in the background.
func TestGoldenDoesNotBoot(t *testing.T) {
	w, _, stateDir := newOwnWorld(t)
	w.write(t, "dead", "")
	if err := lima.Own(stateDir, w.options).Ensure(t.Context()); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff([]string{"validate", "create", "start", "stop"}, w.calls(t)); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(filepath.Join(w.home, "dead")); err != nil {
		t.Fatal(err)
	}
	ensure(t, lima.Own(stateDir, w.options))
	if diff := cmp.Diff([]string{"delete", "validate", "create", "start", "stop", "clone", "start"}, w.calls(t)); diff != "" {
		t.Error(diff)
	}
}

// A copy that was cut off is removed, and made again.
func TestHalfACopy(t *testing.T) {
	w, _, stateDir := newOwnWorld(t)
	one := lima.Own(stateDir, w.options)
	w.write(t, "full", "")
	if err := one.Ensure(t.Context()); !errors.Is(err, driver.ErrDiskFull) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(w.home, ownName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed copy stays: %v", err)
	}
	// As if everything had been killed in the middle of it.
	if err := os.Remove(filepath.Join(w.home, "full")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.home, ownName), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(t, ownName+"/state", "Stopped\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(filepath.Dir(stateDir)), "machines", "lima", ownName, "copying"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.calls(t)
	ensure(t, one)
	if diff := cmp.Diff([]string{"delete", "clone", "start"}, w.calls(t)); diff != "" {
		t.Error(diff)
	}
}

// A machine of one sandbox stops with it and goes with it. Those of sandboxes that
// are gone are found.
func TestOwnEnds(t *testing.T) {
	w, root, stateDir := newOwnWorld(t)
	d := lima.NewOwn(w.options)
	lease := driver.Lease{SandboxID: filepath.Base(stateDir), StateDir: stateDir}
	if err := errors.Join(d.Destroy(t.Context(), lease, true), d.Forget(t.Context(), lease)); err != nil {
		t.Errorf("before there is one: %v", err)
	}
	if made, err := d.Made(t.Context(), root); err != nil || len(made) != 0 {
		t.Errorf("before there is one: %+v, %v", made, err)
	}
	ensure(t, lima.Own(stateDir, w.options))
	vms, err := lima.VM{Machine: lima.At(root, w.options)}.Singles(t.Context())
	if err != nil || len(vms) != 2 || vms[0].Name != ownName || vms[0].Sandbox != lease.SandboxID || vms[0].State != machine.VMRunning || vms[1].State != machine.VMStopped {
		t.Errorf("%+v, %v", vms, err)
	}
	w.calls(t)
	if err := d.Destroy(t.Context(), lease, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"stop"}, w.calls(t)); diff != "" {
		t.Error(diff)
	}
	made, err := d.Made(t.Context(), root)
	if err != nil || len(made) != 2 || made[0].Name != ownName || len(made[0].Sandboxes) != 1 || len(made[1].Sandboxes) != 1 || made[0].Running {
		t.Errorf("%+v, %v", made, err)
	}
	if err := d.Unmake(t.Context(), root, ownName); fault.KindOf(err) != fault.Conflict {
		t.Errorf("that of a sandbox: %v", err)
	}
	known := func(string) bool { return true }
	if strays, err := d.Strays(root, known); err != nil || len(strays) != 0 {
		t.Errorf("%+v, %v", strays, err)
	}
	if err := os.RemoveAll(stateDir); err != nil {
		t.Fatal(err)
	}
	known = func(string) bool { return false }
	strays, err := d.Strays(root, known)
	if err != nil || len(strays) != 1 || strays[0].SandboxID != lease.SandboxID || strays[0].Kind != "a virtual machine" {
		t.Fatalf("%+v, %v", strays, err)
	}
	if err := strays[0].End(); err != nil {
		t.Fatal(err)
	}
	if err := d.Unmake(t.Context(), root, lima.Golden); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"delete", "delete"}, w.calls(t)); diff != "" {
		t.Error(diff)
	}
	if made, err := d.Made(t.Context(), root); err != nil || len(made) != 0 {
		t.Errorf("afterwards: %+v, %v", made, err)
	}
}

// The paths of sockets below an instance's directory have a bound.
func TestLongNames(t *testing.T) {
	w, root, _ := newOwnWorld(t)
	m := lima.Own(filepath.Join(root, "sandboxes", strings.Repeat("x", 60)+"-0123abcd"), w.options)
	if want := "lima litterbox-" + strings.Repeat("x", 21) + "-0123abcd"; m.Name() != want {
		t.Errorf("%q", m.Name())
	}
}
