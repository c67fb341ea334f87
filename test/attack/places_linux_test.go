package attack_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
	"github.com/litterbox-sandbox/litterbox/test/program"
)

// The walls are the same in every kind of place to which an attack applies,
// according to its row. The controls have run in TestAttacks. Here each attack
// runs in one kind of place of this machine for each user; LITTERBOX_TEST_PLACES
// (make test-places) makes it run in all of them. A machine started for the run
// gets every attack.
func TestAttacksInPlaces(t *testing.T) {
	for _, place := range append(slices.Clone(here), threat.Machine) {
		t.Run(string(place), func(t *testing.T) {
			if place == threat.Machine {
				t.Logf("on %s", program.NeedElsewhere(t).Name)
			}
			for i, a := range attacks() {
				row, ok := threat.Find(threat.Attacks, a.Name)
				if !ok || !slices.Contains(row.Places, place) || !chosen(row, place, i) {
					continue
				}
				t.Run(a.Name, func(t *testing.T) {
					w := newWorld(t)
					w.in(place)
					a.Run(w)
				})
			}
		})
	}
}

// here are the kinds of place that this machine makes by itself.
var here = []threat.Place{threat.Copy, threat.Image, threat.Degraded}

// chosen reports whether the attack with the number i runs in a place. Root and
// an ordinary user choose differently.
func chosen(row threat.Attack, place threat.Place, i int) bool {
	if place == threat.Machine || os.Getenv("LITTERBOX_TEST_PLACES") == "all" {
		return true
	}
	if os.Geteuid() != 0 {
		i++
	}
	var places []threat.Place
	for _, p := range here {
		if slices.Contains(row.Places, p) && (p != threat.Degraded || abi() >= 3) {
			places = append(places, p)
		}
	}
	return len(places) > 0 && places[i%len(places)] == place
}

// in makes the sandboxes of a world of another kind.
func (w *world) in(place threat.Place) {
	w.Helper()
	w.Place = place
	switch place {
	case threat.Copy:
		w.Host = w.With("LITTERBOX_WORKSPACE=copy")
	case threat.Degraded:
		if abi() < 3 {
			w.Skip("no Landlock of version 3 on this machine")
		}
		w.Host = w.With("LITTERBOX_TIER=degraded")
	case threat.Machine:
		w.Move(program.NeedElsewhere(w))
	case threat.Image:
		program.Need(w, "busybox")
		root := filepath.Join(w.Dir, "root")
		for _, dir := range []string{"bin", "usr/bin", "etc", "tmp"} {
			w.must(os.MkdirAll(filepath.Join(root, dir), 0o755))
		}
		if got := w.Shell("cp $(command -v busybox) " + root + "/bin/busybox && for a in $(busybox --list); do test $a = busybox || ln -s busybox " + root + "/bin/$a; done"); got.Code != 0 {
			w.Fatal(got.Stderr)
		}
		w.Put(filepath.Join(w.Home, ".config/litterbox/config.toml"), "[container]\nbase-image = \""+root+"\"\n")
	}
}

// creating are the arguments of create that a place needs.
func (w *world) creating() []string {
	if w.Place == threat.Degraded {
		return []string{"--allow-degraded"}
	}
	return nil
}

// scratch is a directory inside that no commit has: in the degraded tier there
// is no /tmp of its own.
func (w *world) scratch() string {
	w.Helper()
	if w.Place != threat.Degraded {
		return "/tmp"
	}
	return w.InsideShell(box, `printf %s "$TMPDIR"`).Stdout
}
