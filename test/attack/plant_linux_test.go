package attack_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/threat"
)

// plantAttacks prepare the sandbox's own persistent directories for the moment
// when the host assembles it again.
func plantAttacks() []attack {
	var all []attack
	for name, plant := range map[string]struct{ script, mountPoint string }{
		"a link in the place of a mount point": {"rm -rf $HOME/.local; mkdir $HOME/.local; ln -s %s $HOME/.local/bin", ".local/bin"},
		"a link above a mount point":           {"rm -rf $HOME/.local; ln -s %s $HOME/.local", ".local/bin"},
		"a relative link above a mount point":  {"rm -rf $HOME/.local; ln -s ../../../../../../../../..%s $HOME/.local", ".local/bin"},
		"a file in the place of a directory":   {"rm -rf $HOME/.local; echo %s > $HOME/.local", ".local/bin"},
		"a pipe in the place of a directory":   {"rm -rf $HOME/.local; mkfifo $HOME/.local; : %s", ".local/bin"},
	} {
		all = append(all, attack{
			Name: "plant: " + name,
			Control: func(w *world) {
				w.Shell(strings.ReplaceAll(plant.script, "%s", w.Canary) + "; mkdir -p $HOME/" + plant.mountPoint + "/x")
				if _, err := os.Lstat(filepath.Join(w.Home, plant.mountPoint, "x")); err == nil && len(w.touched()) == 0 {
					w.Fatal("mkdir does not fall for it, nor is it stopped by it")
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.InsideShell(box, strings.ReplaceAll(plant.script, "%s", w.Canary))
				w.Must("stop", box)
				// Now the human installs a tool, and PATH leads there.
				w.Put(filepath.Join(w.Home, plant.mountPoint, "tool"), "#!/bin/sh\necho the tool\n")
				if err := os.Chmod(filepath.Join(w.Home, plant.mountPoint, "tool"), 0o755); err != nil {
					w.Fatal(err)
				}
				host := w.With("PATH=" + os.Getenv("PATH") + ":" + filepath.Join(w.Home, plant.mountPoint))
				host.Must("start", box)
				w.wantUntouched("starting")
				// An image brings its own tools, and the human's are no part of it.
				got := host.Inside(box, filepath.Join(w.Home, plant.mountPoint, "tool"))
				if w.Place == threat.Image {
					if got.Code == 0 {
						w.Errorf("the human's tool runs inside an image: %s", got.Stdout)
					}
				} else if got.Stdout != "the tool\n" {
					w.Errorf("the tool does not run inside: %s%s", got.Stdout, got.Stderr)
				}
				host.Inside(box, "/bin/sh", "-c", "echo attacked > "+filepath.Join(w.Home, plant.mountPoint, "tool")+"; echo x > "+filepath.Join(w.Home, plant.mountPoint, "new"))
				w.wantContent(filepath.Join(w.Home, plant.mountPoint, "tool"), "#!/bin/sh\necho the tool\n")
				if entries, err := os.ReadDir(filepath.Join(w.Home, plant.mountPoint)); err != nil || len(entries) != 1 {
					w.Errorf("the host's tools are now %v, %v", entries, err)
				}
			},
		})
	}
	return append(all, attack{
		Name: "plant links in the place of what the host writes",
		Control: func(w *world) {
			w.Put(filepath.Join(w.Dir, "file"), "before\n")
			w.Shell("ln -s " + w.Dir + "/file link; echo after > link")
			w.wantContent(filepath.Join(w.Dir, "file"), "after\n")
		},
		Run: func(w *world) {
			victim := filepath.Join(w.Dir, "file")
			w.Put(victim, "before\n")
			w.sandbox()
			w.InsideShell(box, "for f in $HOME/.gitconfig $HOME/.bashrc README .git/index .git/HEAD .git/config; do ln -sf "+victim+" $f; done; "+
				"rm -rf $HOME/.litterbox $HOME/.cache /tmp/.litterbox; for d in $HOME/.litterbox $HOME/.cache /tmp/.litterbox .litterbox; do ln -s "+w.Canary+" $d; done")
			w.Litterbox("stop", box)
			w.Litterbox("start", box)
			w.Litterbox("exec", box, "--", "true")
			w.Litterbox("write", box, "README")
			w.Litterbox("status", box)
			w.Litterbox("merge", box, "--yes", "--no-edit")
			w.wantContent(victim, "before\n")
			w.wantUntouched("litterbox")
		},
	})
}
