package attack_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ownerAttacks come from another user of the machine, who waits for root, or
// any other user, to use what that user controls.
func ownerAttacks() []attack {
	return []attack{
		{
			Name: "have another user's state directory used",
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
				w.giveAway(w.State, 0o755, os.Geteuid()) // restored for the end of the test
			},
		},
		{
			Name: "have root write into another user's repository",
			Control: func(w *world) {
				w.Must("agent", "install", "claude", "--scope", "project")
				if _, err := os.Stat(filepath.Join(w.Repo, ".mcp.json")); err != nil {
					w.Fatalf("nothing is written in a repository of one's own: %v", err)
				}
			},
			Run: func(w *world) {
				if os.Geteuid() != 0 {
					return // only root could
				}
				w.Git("config", "--global", "safe.directory", "*")
				w.giveAway(w.Repo, 0o755, 54321)
				got := w.Litterbox("agent", "install", "claude", "--scope", "project")
				if got.Code == 0 || !strings.Contains(got.Stderr, "belongs to uid 54321") || !strings.Contains(got.Stderr, "sudo -H -u '#54321' litterbox agent install") {
					w.Errorf("%+v", got)
				}
				if _, err := os.Lstat(filepath.Join(w.Repo, ".mcp.json")); err == nil {
					w.Error("it was written")
				}
			},
		},
		{
			Name: "have a live sandbox's pin cleared away",
			Control: func(w *world) {
				// One that this state directory knew, and that is gone, goes.
				w.Must("create", box)
				id := w.pin()
				w.Must("delete", "--force", "--purge", box)
				w.Git("update-ref", "refs/litterbox/keep/"+id, "HEAD")
				w.Must("doctor", "--fix")
				if got := w.Git("for-each-ref", "refs/litterbox/keep"); got != "" {
					w.Errorf("a dead pin stays: %s", got)
				}
			},
			Run: func(w *world) {
				w.Must("create", box)
				id := w.pin()
				other := w.With("XDG_STATE_HOME=" + filepath.Join(w.Dir, "other"))
				other.Must("create", "another")
				got := other.Litterbox("doctor", "--fix")
				if !strings.Contains(got.Stdout+got.Stderr, "git update-ref -d refs/litterbox/keep/"+id) {
					w.Errorf("doctor says nothing of it: %+v", got)
				}
				if kept := w.Git("for-each-ref", "refs/litterbox/keep/"+id); kept == "" {
					w.Error("the pin of a live sandbox was cleared away")
				}
				other.Must("delete", "--force", "another")
			},
		},
		{
			Name: "lend objects that change",
			Control: func(w *world) {
				// From a store of one's own litterbox borrows; and git itself takes
				// what the store says, and waits at a pipe.
				lender := w.borrow()
				w.Must("create", box)
				w.Must("delete", "--force", "--purge", box)
				said := w.Shell("b=$(git rev-parse HEAD:README); o=" + lender + "/.git/objects; f=$o/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-); " +
					"e=$(echo evil | git -C " + lender + " hash-object -w --stdin); cp -f $o/$(echo $e | cut -c1-2)/$(echo $e | cut -c3-) $f; git cat-file -p $b; " +
					"rm -f $f; mkfifo $f; timeout 5 git cat-file -p $b; echo ended $?")
				if said.Stdout != "evil\nended 124\n" {
					w.Errorf("git notices: %+v", said)
				}
			},
			Run: func(w *world) {
				lender := w.borrow()
				if os.Geteuid() != 0 {
					return // only root can give a store away
				}
				w.giveAway(lender, 0o755, 54321)
				w.Shell("for f in $(find " + lender + "/.git/objects -type f); do rm -f $f; mkfifo $f; done")
				for _, args := range [][]string{{"create", box}, {"create", box, "--dirty"}} {
					got := w.Shell("timeout -k 10 120 '" + w.Program("litterbox") + "' " + strings.Join(args, " ") + " </dev/null")
					if got.Code == 0 || got.Code == 124 || !strings.Contains(got.Stderr, "which belongs to uid 54321") || !strings.Contains(got.Stderr, "safe.directory "+lender) {
						w.Errorf("%q with a store that another user changes: %+v", args, got)
					}
				}
				// Who trusts that user says so, to git.
				w.Shell("find " + lender + "/.git/objects -type p -delete; cp -r " + lender + ".whole/. " + lender + "/.git/objects/")
				w.Git("config", "--global", "--add", "safe.directory", lender)
				w.Must("create", box)
			},
		},
		{
			Name: "have another user's configuration count",
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

// borrow makes the world's repository one that borrows all its objects from another,
// which it returns; beside that lies a copy of its objects.
func (w *world) borrow() (lender string) {
	w.Helper()
	lender = filepath.Join(w.Dir, "lender")
	got := w.Shell("git clone -q --no-local . " + lender + " && cd " + lender + " && for p in .git/objects/pack/*.pack; do mv $p ../pack && rm -f .git/objects/pack/* && git unpack-objects -q <../pack || exit 1; done && " +
		"cp -r .git/objects " + lender + ".whole && cd '" + w.Repo + "' && echo " + lender + "/.git/objects >.git/objects/info/alternates && " +
		"find .git/objects -mindepth 1 -maxdepth 1 ! -name info -exec rm -rf {} + && git fsck --connectivity-only")
	if got.Code != 0 {
		w.Fatalf("nothing can be borrowed: %+v", got)
	}
	return lender
}

// pin is the id of the one sandbox that keeps its base.
func (w *world) pin() string {
	w.Helper()
	found := strings.Fields(w.Git("for-each-ref", "--format=%(refname:lstrip=3)", "refs/litterbox/keep"))
	if len(found) != 1 {
		w.Fatalf("pins: %q", found)
	}
	return found[0]
}

// plantedState makes the state directory another user's; an ordinary user
// cannot give it away, and makes it world-writable.
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

// giveAway makes a tree another user's. Without root it only changes the mode
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
