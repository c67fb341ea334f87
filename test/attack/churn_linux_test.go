package attack_test

import (
	"fmt"
	"path/filepath"
	"strings"
)

// churn turns one name into a directory, a link to a private file, a pipe and a
// file, again and again, in the directory $1, until $2 appears.
const churn = `cd "$1" && while ! test -e "$2"; do
	rm -rf turn; mkdir turn; echo x >turn/key
	rm -rf turn; ln -s "$3" turn
	rm -f turn; mkfifo turn
	rm -f turn; echo x >turn; mv turn turned; ln -s "$3/key" turn
	rm -f turn turned; mkdir -m 000 turn; chmod 700 turn
done`

// churnAttacks change what the host looks at, while it looks.
func churnAttacks() []attack {
	return []attack{{
		Name: "change home and workspace while the host works",
		Control: func(w *world) {
			private := filepath.Join(w.Home, "private")
			w.Put(filepath.Join(private, "key"), w.Secret)
			w.Put(filepath.Join(w.Dir, "turning/README"), "")
			// A reader by path gets the secret sooner or later, or waits at the
			// pipe for ever.
			got := w.Shell("stop=" + w.Dir + "/stop; sh -c '" + churn + "' sh " + w.Dir + "/turning $stop " + private + " 2>/dev/null & " +
				"for i in $(seq 100000); do timeout 5 cat " + w.Dir + "/turning/turn/key 2>/dev/null | grep secret- && break; done; : >$stop; wait")
			w.wantSecret("a reader by path", got)
		},
		Run: func(w *world) {
			private := filepath.Join(w.Home, "private")
			w.Put(filepath.Join(private, "key"), w.Secret)
			w.sandbox()
			w.InsideShell(box, "mkdir -p turning $HOME/turning; echo work >turning/work; echo work >work")
			began := w.Litterbox("exec", box, "--no-commit", "--", "/bin/sh", "-c",
				`for dir in "$PWD" "$PWD/turning" "$PWD/.git/info" "$HOME" "$HOME/turning"; do
					setsid sh -c "$1" sh "$dir" /nowhere/stop "$2" >/dev/null 2>&1 </dev/null &
				done; until test -e turn; do sleep 0.01; done; echo began`, "sh", churn, private)
			if !strings.Contains(began.Stdout, "began") {
				w.Fatalf("nothing is turned: %+v", began)
			}
			out := filepath.Join(w.Dir, "out")
			w.Put(filepath.Join(out, "README"), "")
			must := map[string]bool{"status": true, "list": true, "log": true, "exec": true, "diff": true, "stop": true, "start": true, "delete": true}
			for range 3 {
				for _, args := range [][]string{
					{"status", box}, {"list"}, {"exec", box, "--", "/bin/sh", "-c", "echo more >>work"}, {"diff", box, "--stat"}, {"diff", box},
					{"log", box}, {"read", box, "turn"}, {"read", box, "turn/key"}, {"read", box, "turning/turn/key"}, {"write", box, "turn/written"},
					{"cp", box + ":turn", out + "/1"}, {"cp", box + ":turning", out + "/2"}, {"snapshot", box}, {"milestone", box, "-m", "Go on"}, {"df"},
				} {
					w.endsWithout(args, must[args[0]])
				}
			}
			// A link is copied as a link; the search follows none.
			w.wantNoSecret("what was copied out", w.Shell("grep -r secret- "+out+" 2>/dev/null; rm -rf "+out))
			w.wantNoSecret("the branch", w.Shell("git log -p --all; git grep secret- "+box))
			w.wantContent(filepath.Join(private, "key"), w.Secret)
			if got := w.Shell("ls -A " + private); got.Stdout != "key\n" {
				w.Errorf("beside the key there is now %q", got.Stdout)
			}
			if got := w.Git("show", box+":work"); !strings.HasPrefix(got, "work\nmore") {
				w.Errorf("what was done beside it is not committed: %q", got)
			}
			for _, args := range [][]string{{"stop", box}, {"start", box}, {"delete", box, "--force"}} {
				w.endsWithout(args, must[args[0]])
			}
		},
	}}
}

// endsWithout runs a command on the host, which must end, show no secret and, if
// must is set, succeed.
func (w *world) endsWithout(args []string, must bool) {
	w.Helper()
	quoted := "'" + strings.Join(args, "' '") + "'"
	got := w.Shell(fmt.Sprintf("timeout -k 10 180 '%s' %s </dev/null", w.Program("litterbox"), quoted))
	if got.Code == 124 || got.Code == 137 || must && got.Code != 0 {
		w.Errorf("litterbox %s ends with %d: %s%s", quoted, got.Code, got.Stdout, got.Stderr)
	}
	w.wantNoSecret("litterbox "+quoted, got)
}
