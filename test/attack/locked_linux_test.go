package attack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	hostilefs "github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// lockedAttacks make a sandbox's own files such that the host stumbles over
// them, to go on running or to take its disk for ever.
func lockedAttacks() []attack {
	return []attack{
		{
			Name:   "lock the host out of the sandbox's own files",
			Threat: "a sandbox that can neither be stopped nor deleted",
			Control: func(w *world) {
				dir := filepath.Join(w.Dir, "deep")
				if err := os.Mkdir(dir, 0o700); err != nil {
					w.Fatal(err)
				}
				if got := w.probeOutside("deep", dir, "500"); got.Code != 0 {
					w.Fatalf("%+v", got)
				}
				// By its path nobody removes it: it has no permissions, and for
				// root it is longer than a path can be.
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
				if got := w.probeInside("deep", "deep", "500"); got.Code != 0 {
					w.Fatalf("%+v", got)
				}
				got := w.Litterbox("exec", box, "--no-commit", "--", "/bin/sh", "-c",
					"/tmp/probe deep $HOME/deep 500; mkdir -m 000 none $HOME/none; mkfifo pipe $HOME/pipe; "+sleeper("locked")+"chmod 000 $HOME . /tmp")
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
				if got := w.Must("doctor"); strings.Contains(got, "litterbox doctor --fix") {
					w.Errorf("doctor finds something left behind:\n%s", got)
				}
			},
		},
		{
			Name:   "put a pipe in the place of a directory",
			Threat: "a command of the host waits for a writer for ever, and no signal ends it",
			Control: func(w *world) {
				// What opens it for reading waits: timeout ends it.
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
