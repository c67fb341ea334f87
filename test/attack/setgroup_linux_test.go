package attack_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// setGroupAttack targets the bit that directories may have and files may not.
func setGroupAttack() attack {
	return attack{
		Name: "leave set-group-id files",
		Control: func(w *world) {
			for name, answer := range w.outcomes(w.probeOutside("setgroup", w.Canary)) {
				// fchmodat2 came with Linux 6.6.
				if answer != "ok" && (answer != "ENOSYS" || !strings.Contains(name, "fchmodat2")) {
					w.Errorf("outside %q fails too: %s", name, answer)
				}
			}
			if len(w.privileged(w.Canary)) == 0 {
				w.Error("set-group-id files are not noticed")
			}
		},
		Run: func(w *world) {
			w.sandbox()
			w.trySetGroup(func(dir string) program.Result { return w.probeInside("setgroup", dir) })
		},
	}
}

// The same in the tier that has no file system of its own.
func TestSetGroupDegraded(t *testing.T) {
	w := newWorld(t)
	w.Host = w.With("LITTERBOX_TIER=degraded")
	if abi() < 3 {
		t.Skip("no Landlock of version 3 on this machine")
	}
	w.Must("create", box, "--allow-degraded")
	w.Must("cp", w.Program("probe"), box+":probe")
	w.trySetGroup(func(dir string) program.Result { return w.Inside(box, "./probe", "setgroup", dir) })
}

func (w *world) trySetGroup(probe func(dir string) program.Result) {
	w.Helper()
	w.Must("exec", box, "--no-commit", "--", "mkdir", "room")
	for name, answer := range w.outcomes(probe("room")) {
		switch {
		case answer == "ENOSYS" && strings.Contains(name, "fchmodat2"):
		case strings.HasPrefix(name, "directory"):
			if answer != "ok" {
				w.Errorf("%q fails, which git needs: %s", name, answer)
			}
		case answer == "ok":
			w.Errorf("%q is possible", name)
		}
	}
	// Nor through a name of the guest's own, nor outside the place.
	got := w.Inside(box, "/bin/sh", "-c", `chmod g+s `+w.Canary+` && echo SET; cd room; touch f
for n in 0 1 2 3 4 5 6 7 8 9 10 11 12; do ln -sf /proc/self/fd/$n l$n; chmod 2755 l$n 2>/dev/null; chmod 2755 /proc/1/fd/$n 2>/dev/null; done; chmod g+s f 2>/dev/null; test -g f && echo SET f`)
	if info, err := os.Stat(w.Canary); err != nil || info.Mode()&fs.ModeSetgid != 0 || strings.Contains(got.Stdout, "SET") {
		w.Errorf("the bit can be set: %v, %v\n%s", info, err, got.Stdout)
	}
	if found := w.privileged(w.State); len(found) > 0 {
		w.Errorf("programs with the bit lie on the host: %q", found)
	}
	w.Must("delete", "--force", box)
}
