package attack_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ownerAttacks are of another user of the machine, who waits for root, or
// anybody else, to use what that user controls.
func ownerAttacks() []attack {
	return []attack{
		{
			Name:   "have another user's state directory used",
			Threat: "programs, sockets and trust that another user planted count for whoever runs litterbox there (sudo -E)",
			Control: func(w *world) {
				w.plantedState()
				w.giveAway(w.State, 0o755, os.Geteuid())
				if got := w.Litterbox("create", box); got.Code != 0 {
					w.Fatalf("a directory of one's own is refused: %+v", got)
				}
				if got := w.Must("doctor"); strings.Contains(got, "cannot use") {
					w.Errorf("doctor finds fault with a directory of one's own:\n%s", got)
				}
			},
			Run: func(w *world) {
				w.plantedState()
				for _, args := range [][]string{{"create", box}, {"list"}, {"doctor"}, {"trust"}, {"mcp"}} {
					got := w.Litterbox(args...)
					if got.Code == 0 || !strings.Contains(got.Stderr, "cannot use the state directory") || !strings.Contains(got.Stderr, w.State) {
						w.Errorf("%q with a state directory that another user controls: %+v", args, got)
					}
					if os.Geteuid() == 0 && !(strings.Contains(got.Stderr, "uid 54321") && strings.Contains(got.Stderr, "sudo -H")) {
						w.Errorf("%q names neither the owner nor what to type: %s", args, got.Stderr)
					}
				}
				w.giveAway(w.State, 0o755, os.Geteuid()) // for the end of the test
			},
		},
		{
			Name:   "have another user's configuration count",
			Threat: "a configuration that counts as the human's mounts what it likes",
			Control: func(w *world) {
				w.plantedConfig()
				w.giveAway(w.Home, 0o755, os.Geteuid())
				w.Must("create", box)
				w.wantSecret("the planted mount", w.Inside(box, "cat", filepath.Join(w.Dir, "outside", "secret")))
			},
			Run: func(w *world) {
				w.plantedConfig()
				got := w.Litterbox("create", box)
				if got.Code == 0 || !strings.Contains(got.Stderr, "cannot use your configuration") {
					w.Errorf("a configuration that another user controls counts: %+v", got)
				}
				if found := w.Must("doctor"); !strings.Contains(found, "git runs what the configuration there names") {
					w.Errorf("doctor finds no fault with a home that another user controls:\n%s", found)
				}
				w.giveAway(w.Home, 0o755, os.Geteuid())
			},
		},
	}
}

// plantedState makes the state directory another user's; an ordinary user
// cannot give it away, and lets everybody write to it.
func (w *world) plantedState() {
	w.Helper()
	dir := filepath.Join(w.State, "litterbox")
	w.Put(filepath.Join(dir, "trust.json"), `{"version":1,"repositories":{}}`)
	w.giveAway(w.State, 0o777, 54321)
}

func (w *world) plantedConfig() {
	w.Helper()
	w.Put(filepath.Join(w.Dir, "outside", "secret"), w.Secret)
	w.Put(filepath.Join(w.Home, ".config/litterbox/config.toml"), "[mounts]\nread-only = [\""+filepath.Join(w.Dir, "outside")+"\"]\n")
	w.giveAway(w.Home, 0o777, 54321)
}

// giveAway makes a tree another user's. Who is not root only changes the mode
// of its top.
func (w *world) giveAway(top string, mode os.FileMode, uid int) {
	w.Helper()
	err := os.Chmod(top, mode)
	if err == nil && os.Geteuid() == 0 {
		if err = os.Chmod(top, 0o755); err == nil {
			err = filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
				if err == nil {
					err = os.Lchown(path, uid, uid)
				}
				return err
			})
		}
	}
	if err != nil {
		w.Fatal(err)
	}
}
