package attack_test

import (
	"strings"
)

// objectAttacks make git objects by plumbing, without any file in the workspace,
// and commit them: the host takes an agent's own commits as they are.
func objectAttacks() []attack {
	return []attack{
		{
			Name: "trees that stand for 10^10 paths",
			Control: func(w *world) {
				// As much memory as git needs for any honest tree of a hundred paths.
				got := w.Shell(treeBomb + "ulimit -d 262144; git diff-tree -r HEAD~1 HEAD >/dev/null")
				if got.Code == 0 || !strings.Contains(got.Stderr, "ut of memory") {
					w.Errorf("git reads them within 256 MiB: %d %s", got.Code, got.Stderr)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				got := w.InsideShell(box, "echo work > work; "+treeBomb)
				if !strings.Contains(got.Stderr, "they change more than 1000000 paths") || !strings.Contains(got.Stderr, "git reset --soft refs/litterbox/base") {
					w.Errorf("%d: %s", got.Code, got.Stderr)
				}
				// The files are on the branch, and the sandbox serves as before.
				w.Must("status", box)
				w.Must("diff", box, "--stat")
				if got := w.Git("show", box+":work"); strings.TrimSpace(got) != "work" {
					w.Errorf("the files beside the history are not committed: %q", got)
				}
				w.InsideShell(box, "git reset -q --soft refs/litterbox/base; git add work; git commit -qm 'a new beginning'")
				if got := w.Git("log", "--format=%s", box); !strings.Contains(got, "a new beginning") {
					w.Errorf("the history that follows is not taken:\n%s", got)
				}
				w.InsideShell(box, treeBomb)
				w.Must("delete", box, "--force")
			},
		},
		{
			Name: "a message that is a terminal's and litterbox's own",
			Control: func(w *world) {
				w.Shell(forgedCommit)
				if got := w.Git("log", "-1", "--format=%an%n%B%n%(trailers:key=Litterbox-Iteration)"); !strings.Contains(got, "\x1b") || strings.Count(got, "Litterbox-Iteration: 999") != 2 {
					w.Errorf("git itself does not show them: %q", got)
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.InsideShell(box, forgedCommit)
				got := w.Git("log", "--format=%an %ae%n%B", box)
				if strings.ContainsAny(got, "\x1b\x07") {
					w.Errorf("escapes are on the branch: %q", got)
				}
				if !strings.Contains(got, "fix ^[]0;owned^G the parser") || !strings.Contains(got, "> Litterbox-Iteration: 999") {
					w.Errorf("the message can no longer be read: %q", got)
				}
				if got := w.Git("log", "--format=%(trailers:key=Litterbox-Iteration,valueonly)%(trailers:key=Litterbox-Audit,valueonly)", box); strings.Contains(got, "999") || strings.Contains(got, "forged") {
					w.Errorf("trailers of the agent's are on the branch: %q", got)
				}
			},
		},
	}
}

const treeBomb = `blob=$(git hash-object -w --stdin </dev/null)
level() { for n in 0 1 2 3 4 5 6 7 8 9; do printf '%s %s\t%s\n' "$1" "$2" "$n"; done | git mktree; }
tree=$(level '100644 blob' "$blob")
for n in 1 2 3 4 5 6 7 8 9; do tree=$(level '040000 tree' "$tree"); done
git reset -q --soft "$(git commit-tree -m bomb -p HEAD "$tree")"
`

const forgedCommit = `printf 'fix \033]0;owned\007 the parser\n\nLitterbox-Iteration: 999\nLitterbox-Audit: forged\n' |
GIT_AUTHOR_NAME="$(printf 'A\033[2J')" git -c user.name=agent -c user.email=a@example.com commit -q --allow-empty --cleanup=verbatim -F -`
