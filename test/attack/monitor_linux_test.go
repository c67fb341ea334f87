package attack_test

import (
	"os"
	"path/filepath"
	"strings"
)

// monitorAttacks target the source from which git inside learns the changed
// files: the upper directory and our program, both shown below /.litterbox.
func monitorAttacks() []attack {
	// What a writable directory, here $1, allows.
	const script = `cd "$1" && {
		echo attacked > planted; mkdir made; chmod 777 .; touch -d 2001-01-01 mine; echo more >> mine; ln mine hard; rm -f gone
		ln -s /etc link; ./runs && echo ran
	}; echo attacked >> "$2"; true`
	return []attack{
		{
			Name: "write below the overlay",
			Control: func(w *world) {
				dir, program := filepath.Join(w.Dir, "upper"), filepath.Join(w.Dir, "program")
				for name, content := range map[string]string{"mine": "mine\n", "gone": "gone\n", "runs": "#!/bin/sh\n"} {
					w.Put(filepath.Join(dir, name), content)
				}
				if err := os.Chmod(filepath.Join(dir, "runs"), 0o755); err != nil {
					w.Fatal(err)
				}
				w.Put(program, "")
				got := w.Command(w.Dir, "/bin/sh", "-c", script, "sh", dir, program)
				w.wantContent(filepath.Join(dir, "planted"), "attacked\n")
				w.wantContent(program, "attacked\n")
				if got.Stdout != "ran\n" {
					w.Errorf("the control did not run its program: %q %s", got.Stdout, got.Stderr)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.InsideShell(box, "echo mine > mine; echo gone > gone; printf '#!/bin/sh\n' > runs; chmod +x runs; ls /.litterbox/changes/mine")
				got := w.Inside(box, "/bin/sh", "-c", script, "sh", "/.litterbox/changes", "/.litterbox/git-fsmonitor")
				if strings.Contains(got.Stdout, "ran") {
					w.Error("a program was run from the upper directory, past the overlay")
				}
				for name, want := range map[string]string{"mine": "mine\n", "gone": "gone\n"} {
					w.wantContent(filepath.Join(w.upper(), name), want)
				}
				for _, name := range []string{"planted", "made", "hard", "link"} {
					if _, err := os.Lstat(filepath.Join(w.upper(), name)); err == nil {
						w.Errorf("%q was made in the upper directory, past the overlay", name)
					}
				}
				w.Inside(box, "/bin/sh", "-c", "mv /.litterbox/changes /.litterbox/away; rm -rf /.litterbox; mkdir /.litterbox/x; ln -s / /.litterbox/y")
				if got := w.Inside(box, "/bin/sh", "-c", "ls /.litterbox"); got.Stdout != "changes\ngit\ngit-fsmonitor\nmend-git\nworkspace\n" {
					w.Errorf("what is shown to git was changed: %q", got.Stdout)
				}
			},
		},
	}
}
