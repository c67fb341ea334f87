package attack_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/redteam"
)

// gitAttacks make a repository that runs code in any git that opens it, and
// then make the host do everything that it does with a sandbox.
func gitAttacks() []attack {
	var all []attack
	for _, h := range redteam.HostileRepositories() {
		all = append(all, attack{
			Name: "git: " + h.Name,
			Control: func(w *world) {
				w.Shell(h.Script(w.Canary))
				w.Shell(h.Trigger)
				if len(w.touched()) == 0 {
					w.Fatal("git itself does not fall for it")
				}
			},
			Run: func(w *world) {
				w.sandbox()
				w.InsideShell(box, h.Script(w.Canary))
				w.everything(h.Name)
			},
		})
	}
	return append(all, treeAttack(), nameAttack(), escapeAttack(), gitFileAttack())
}

// everything does on the host what a human does with a sandbox, and then
// checks whether any of it ran the sandbox's code.
func (w *world) everything(hostile string) {
	w.Helper()
	w.Put(filepath.Join(w.Dir, "input"), "copied\n")
	for _, args := range [][]string{
		{"exec", box, "--", "true"},
		{"exec", box, "--", "/bin/sh", "-c", "echo again >> README; mkdir -p d; echo x > d/f; rm -f src/main.txt"},
		{"cp", filepath.Join(w.Dir, "input"), box + ":copied"},
		{"list"},
		{"list", "--json"},
		{"status", box},
		{"log", box},
		{"diff", box},
		{"diff", box, "--stat"},
		{"milestone", box, "-m", "all of it"},
		{"stop", box},
		{"start", box},
		{"exec", box, "--", "true"},
		{"apply", box, "--yes", "--no-edit"},
		{"merge", box, "--yes", "--no-edit"},
		{"delete", "--force", box},
	} {
		got := w.Litterbox(args...)
		w.wantUntouched("with " + hostile + ", litterbox " + strings.Join(args, " "))
		// The last may find that merge has deleted it. Everything before must
		// keep working: a refusal would be safe, but useless.
		if got.Code != 0 && args[0] != "delete" {
			w.Errorf("with %s, litterbox %q exited %d: %s", hostile, args, got.Code, got.Stderr)
		}
	}
	// What lands in the checkout must not run in the human's next commands,
	// as long as they do not look into a repository within.
	w.Shell("git status; git log -p; git diff HEAD~1; touch after; git add after; git commit -qm after")
	w.wantUntouched("with " + hostile + ", git after the merge")
}

// treeAttack commits trees with names that no work tree can hold.
func treeAttack() attack {
	script := func(w *world, probe string) string {
		return "set -e; blob=$(printf '#!/bin/sh\\ntouch " + w.Canary + "/tree\\n' | git hash-object -w --stdin); " +
			"raw() { " + probe + " tree \"$@\" | git hash-object -t tree -w --literally --stdin; }; " +
			"hooks=$(raw 100755 post-merge $blob 100755 post-checkout $blob 100755 post-commit $blob); dotgit=$(raw 40000 hooks $hooks); " +
			"up=$(raw 100644 escaped $blob); " +
			"all=$(raw 100644 ../escaped $blob 40000 .. $up 40000 .git $dotgit 40000 .GIT $dotgit 40000 git~1 $dotgit 100644 /abs $blob 100644 a/../../b $blob 100644 good $blob); " +
			"commit=$(git commit-tree -p HEAD -m crafted $all); git update-ref HEAD $commit; git ls-tree -r -t HEAD"
	}
	return attack{
		Name: "git: trees with names of .git and ..",
		Control: func(w *world) {
			got := w.Shell(script(w, w.Program("probe")))
			for _, name := range []string{"../escaped", ".git/hooks/post-merge", ".GIT", "git~1"} {
				if !strings.Contains(got.Stdout, name) {
					w.Fatalf("the crafted commit does not hold %s:\n%s%s", name, got.Stdout, got.Stderr)
				}
			}
		},
		Run: func(w *world) {
			w.sandbox()
			w.probeInside("tree") // brings it in
			if got := w.InsideShell(box, script(w, w.scratch()+"/probe")); !strings.Contains(got.Stdout, ".git/hooks/post-merge") {
				w.Fatalf("the commit could not be crafted: %s%s", got.Stdout, got.Stderr)
			}
			w.InsideShell(box, "true")
			got := w.Git("log", "--all", "--format=", "--name-only", "-z", "-m")
			for _, name := range strings.FieldsFunc(got, func(r rune) bool { return r == 0 || r == '\n' }) {
				for _, part := range strings.Split(name, "/") {
					if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
						w.Errorf("a commit on the host holds the path %q", name)
					}
				}
			}
			if got := w.Shell("git fsck --strict --no-dangling"); got.Code != 0 {
				w.Errorf("the host's repository is no longer sound: %s%s", got.Stdout, got.Stderr)
			}
			w.Litterbox("diff", box)
			w.Litterbox("merge", box, "--yes", "--no-edit")
			w.Shell("git status; git commit -q --allow-empty -m next")
			w.wantUntouched("a crafted tree")
			for _, path := range []string{filepath.Join(w.Repo, ".git/hooks/post-merge"), filepath.Join(w.Repo, "../escaped"), filepath.Join(w.Repo, "../b")} {
				if _, err := os.Lstat(path); err == nil {
					w.Errorf("a crafted tree wrote %s", path)
				}
			}
		},
	}
}

// nameAttack gives files names that are options.
func nameAttack() attack {
	script := "for f in --all --output=written -n --exec=touch --upload-pack=x ':(top)x' '-c' \"$(printf 'new\\nline')\"; do echo x > \"./$f\"; done"
	return attack{
		Name: "git: names that are options",
		Control: func(w *world) {
			w.Shell(script + "; git diff --output*")
			if _, err := os.Stat(filepath.Join(w.Repo, "written")); err != nil {
				w.Fatal("git itself does not fall for it")
			}
		},
		Run: func(w *world) {
			w.sandbox()
			w.InsideShell(box, script)
			w.InsideShell(box, "rm -- -n; mv -- --all src/--all")
			w.Litterbox("diff", box)
			w.Litterbox("status", box)
			want := "--exec=touch\n--output=written\n--upload-pack=x\n-c\n:(top)x\nREADME\nnew\nline\nsrc/--all\nsrc/main.txt\n"
			if got := w.Shell("git ls-tree -rz --name-only " + box + " | tr '\\0' '\\n'").Stdout; got != want {
				w.Errorf("the branch holds\n%swant\n%s", got, want)
			}
			if _, err := os.Lstat(filepath.Join(w.Repo, "written")); err == nil {
				w.Error("a file name was taken for git's --output")
			}
		},
	}
}

// escapeAttack writes to the human's terminal.
func escapeAttack() attack {
	const escape = "\x1b]0;attacked\x07"
	script := `printf 'x' > "$(printf 'name\033]0;attacked\007')"; git add -A; git -c user.name="$(printf 'me\033[2J')" commit -qm "$(printf 'message \033]0;attacked\007')"`
	return attack{
		Name: "git: escape sequences in listings",
		Control: func(w *world) {
			w.Shell(script)
			if got := w.Git("log", "-1", "--format=%B"); !strings.Contains(got, escape) {
				w.Fatalf("the message does not hold the sequence: %q", got)
			}
		},
		Run: func(w *world) {
			w.sandbox()
			w.InsideShell(box, script)
			w.Must("exec", box, "-m", "said "+escape, "--", "/bin/sh", "-c", "true # "+escape)
			w.InsideShell(box, `setsid /bin/sh -c 'sleep 300; : "`+escape+`"' </dev/null >/dev/null 2>&1 & ln -s x "$(printf 'l\033[2J')"; mkfifo "$(printf 'fifo\033[2J')"`)
			for _, args := range [][]string{{"list"}, {"status", box}, {"log", box}, {"exec", box, "--", "true"}, {"merge", box, "--no-edit"}} {
				if got := w.Litterbox(args...); strings.ContainsAny(got.Stdout+got.Stderr, "\x1b\x07") {
					w.Errorf("litterbox %q prints escape sequences: %q", args, got.Stdout+got.Stderr)
				}
			}
		},
	}
}

// gitFileAttack makes .git something other than a directory.
func gitFileAttack() attack {
	return attack{
		Name: "git: .git replaced",
		Control: func(w *world) {
			w.hostileElsewhere()
			w.Shell("rm -rf .git; echo 'gitdir: " + w.Dir + "/elsewhere/.git' > .git; git status")
			if len(w.touched()) == 0 {
				w.Fatal("git itself does not fall for it")
			}
		},
		Run: func(w *world) {
			w.hostileElsewhere()
			w.sandbox()
			elsewhere := w.Dir + "/elsewhere/.git"
			for _, script := range []string{
				"echo 'gitdir: " + elsewhere + "' > .git", "ln -s " + elsewhere + " .git", "true", "mkfifo .git", "mkdir -p .git; echo DIRC > .git/index; echo garbage > .git/HEAD",
				"mkdir -p .git; head -c 65536 /dev/urandom > .git/config; ln -sf /etc/passwd .git/HEAD", "mkdir .git; chmod 0 .git",
			} {
				w.InsideShell(box, "chmod 700 .git; rm -rf .git; "+script+"; date >> README")
				for _, args := range [][]string{{"status", box}, {"diff", box}, {"exec", box, "--", "true"}, {"stop", box}, {"start", box}} {
					if got := w.Litterbox(args...); got.Code != 0 {
						w.Errorf("after %q, litterbox %q exited %d: %s", script, args, got.Code, got.Stderr)
					}
				}
				w.wantUntouched(script)
			}
			if got := w.Git("ls-tree", "-r", "--name-only", box); got != "README\nsrc/main.txt" {
				w.Errorf("the branch holds\n%s", got)
			}
		},
	}
}

// hostileElsewhere is a repository on the host that runs code when opened.
func (w *world) hostileElsewhere() {
	w.Helper()
	dir := filepath.Join(w.Dir, "elsewhere")
	if got := w.Shell("git init -q " + dir + " && git -C " + dir + " config core.fsmonitor 'touch " + w.Canary + "/elsewhere' && git -C " + dir +
		" config core.worktree " + w.Repo); got.Code != 0 {
		w.Fatal(got.Stderr)
	}
}
