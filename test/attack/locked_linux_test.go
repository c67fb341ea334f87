package attack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	hostilefs "github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// lockedAttacks make a sandbox's own files such that the host stumbles over
// them, so that the sandbox goes on running or keeps its disk space for ever.
func lockedAttacks() []attack {
	return []attack{
		{
			Name: "lock the host out of the sandbox's own files",
			Control: func(w *world) {
				dir := filepath.Join(w.Dir, "deep")
				if err := os.Mkdir(dir, 0o700); err != nil {
					w.Fatal(err)
				}
				if got := w.probeOutside("deep", dir, "500"); got.Code != 0 {
					w.Fatalf("%+v", got)
				}
				// It cannot be removed by its path: it has no permissions, and
				// for root it is longer than a path can be.
				if err := os.Remove(filepath.Join(dir, strings.Repeat("deeper-down/", 500))); !errors.Is(err, syscall.ENAMETOOLONG) && !errors.Is(err, os.ErrPermission) {
					w.Errorf("the bottom of the tree: %v", err)
				}
				if err := hostilefs.Remove(dir); err != nil {
					w.Error(err)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				if got := w.InsideShell(box, "echo work >work; mkdir $HOME/deep deep"); got.Code != 0 {
					w.Fatalf("%+v", got)
				}
				depth := "500"
				if w.Place == threat.Degraded { // where a path that is too long has its mode refused
					depth = "250"
				}
				if got := w.probeInside("deep", "deep", depth); got.Code != 0 {
					w.Fatalf("%+v", got)
				}
				got := w.Litterbox("exec", box, "--no-commit", "--", "/bin/sh", "-c",
					w.scratch()+"/probe deep $HOME/deep "+depth+"; mkdir -m 000 none $HOME/none; mkfifo pipe $HOME/pipe; "+sleeper("locked")+"chmod 000 $HOME . "+w.scratch())
				if got.Code != 0 {
					w.Fatalf("%+v", got)
				}
				_, guest, err := w.Processes(box)
				if err != nil {
					w.Fatal(err)
				}
				if got := w.Litterbox("stop", box); got.Code != 0 {
					w.Errorf("stop: %+v", got)
				}
				w.await("the guest has ended", func() bool { return syscall.Kill(guest.PID, 0) != nil })
				w.Must("df")
				if got := w.Litterbox("delete", "--force", box); got.Code != 0 {
					w.Errorf("delete: %+v", got)
				}
				if got := w.Litterbox("trash", "empty", "--yes"); got.Code != 0 {
					w.Errorf("trash empty: %+v", got)
				}
				for _, place := range []string{"sandboxes", "*/sandboxes", "*/*/sandboxes"} {
					left, err := filepath.Glob(filepath.Join(w.State, "litterbox", place, box+"-*"))
					if err != nil || len(left) > 0 {
						w.Errorf("left of it: %q, %v", left, err)
					}
				}
				if got := w.Litterbox("doctor").Stdout; got == "" || strings.Contains(got, "litterbox doctor --fix") {
					w.Errorf("doctor finds something left behind:\n%s", got)
				}
			},
		},
		{
			Name: "put a pipe in the place of a directory",
			Control: func(w *world) {
				// A program that opens it for reading waits: timeout ends it.
				if got := w.Shell("mkfifo pipe && timeout 1 cat pipe; echo $?"); got.Stdout != "124\n" {
					w.Errorf("opening a pipe does not wait: %+v", got)
				}
			},
			Run: func(w *world) {
				w.Put(filepath.Join(w.Repo, ".litterbox.toml"), "[container.services.web]\ncommand = [\"/bin/sh\", \"-c\", \"echo up; exec sleep 600\"]\n")
				w.Git("add", ".litterbox.toml")
				w.Git("commit", "--quiet", "-m", "a service")
				w.Must("trust")
				w.sandbox()
				w.await("the service has printed", func() bool { return strings.Contains(w.Litterbox("service", box, "logs").Stdout, "up") })
				w.InsideShell(box, "rm -rf src; mkfifo src; rm -rf .git/refs/heads; mkfifo .git/refs/heads; cd $HOME/.local/state/litterbox && rm -rf services && mkfifo services")
				w.Must("stop", box)
				// Each with its own end; limit of every command in package program.
				for _, args := range [][]string{{"service", box, "logs"}, {"diff", box}, {"status", box}, {"df"}, {"list"}, {"doctor"}} {
					w.Litterbox(args...)
				}
				if got := w.Litterbox("delete", "--force", box); got.Code != 0 {
					w.Errorf("delete: %+v", got)
				}
			},
		},
	}
}
