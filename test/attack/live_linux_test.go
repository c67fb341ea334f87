package attack_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/redteam"
)

// liveAttacks work in the project directory itself, in a live environment, and
// try to make the host's git run something.
func liveAttacks() []attack {
	return []attack{liveGit(), livePlants(), liveLinks(), liveModules(), liveFiles()}
}

// live runs a script in the live environment of the repository.
func (w *world) live(script string) {
	w.Helper()
	if got := w.Litterbox("env", "shell", "--", "sh", "-c", script); got.Code == 125 {
		w.Fatalf("the environment does not work: %s", got.Stderr)
	}
	w.Cleanup(func() { w.Must("env", "delete", "--all", "--stop") })
}

// below are the repositories somewhere in the tree, where git obeys them for
// anyone who enters: docs/security.md says that about live environments.
var below = []string{"nested bare repository", "nested repository"}

func liveGit() attack {
	return attack{
		Name: "live: a checkout's git",
		Control: func(w *world) {
			for _, h := range redteam.HostileRepositories() {
				if h.Name == "hooks" {
					w.Shell(h.Script(w.Canary))
					w.Shell(h.Trigger)
				}
			}
			if len(w.touched()) == 0 {
				w.Fatal("git itself does not fall for it")
			}
		},
		Run: func(w *world) {
			before := w.Shell("cat .git/config; ls -A .git .git/hooks .git/info | grep -vxE 'index|ORIG_HEAD'").Stdout
			for _, h := range redteam.HostileRepositories() {
				if slices.Contains(below, h.Name) {
					continue
				}
				w.live(h.Script(w.Canary))
				if after := w.Shell("cat .git/config; ls -A .git .git/hooks .git/info | grep -vxE 'index|ORIG_HEAD'").Stdout; after != before {
					w.Fatalf("%s changed the git directory:\n%s\nbefore:\n%s", h.Name, after, before)
				}
				w.Shell("cp -a . ../triggered && cd ../triggered && { " + h.Trigger + "; }; rm -rf ../triggered")
				w.wantUntouched("with " + h.Name + " in a live checkout, git")
				w.Shell("git reset -q --hard; git clean -ffdxq")
			}
		},
	}
}

// livePlants goes around the read-only directory: by its name, by what a host's
// git writes again, and by an index that git would never write.
func livePlants() attack {
	const plant = `mkdir -p sub && cd sub && git init -q . && git commit -q --allow-empty -m x && git config core.fsmonitor "touch CANARY/planted; false" && cd .. &&
		git add sub 2>/dev/null; git ls-files -s`
	script := func(w *world) string { return strings.ReplaceAll(plant, "CANARY", w.Canary) }
	return attack{
		Name: "live: an index with a repository in it",
		Control: func(w *world) {
			w.Shell(script(w))
			w.Shell("git status")
			if len(w.touched()) == 0 {
				w.Fatal("git itself does not fall for it")
			}
		},
		Run: func(w *world) {
			w.live(script(w))
			w.Shell("git status; git diff; git commit -qam x")
			w.wantUntouched("with a planted repository, git status")
			// .git moved away, made again, and files that the host's git replaces
			// meanwhile.
			w.live(`mv .git moved; rm -rf .git; git init -q other; mv other/.git .git; mv other .git`)
			w.Git("config", "user.note", "replaced while the environment runs")
			w.live(`for f in .git/config /.litterbox/checkout.git/config; do printf '[core]\n\tfsmonitor = touch ` + w.Canary + `/replaced\n' >> $f; done; ` +
				`echo ../evil > /.litterbox/checkout.git/commondir; mv /.litterbox/checkout.git /.litterbox/x`)
			w.Shell("git status")
			w.wantUntouched("after git config outside, git status")
			if got := w.Git("config", "user.note"); !strings.Contains(got, "replaced") {
				w.Errorf("the configuration is %q", got)
			}
		},
	}
}

// liveLinks leaves links and pipes where litterbox reads or writes on the host.
func liveLinks() attack {
	const leave = `for f in HEAD index commondir; do rm -rf .git/$f; ln -s KEY .git/$f; done; rm -f .gitmodules; ln -s KEY .gitmodules; ` +
		`rm -f .vscode; ln -s PRIVATE .vscode; mkfifo pipe Makefile; ln -s PRIVATE/made package.json`
	return attack{
		Name: "live: links out of the project",
		Control: func(w *world) {
			w.Put(filepath.Join(w.Home, "private/key"), w.Secret)
			w.Shell("ln -s " + filepath.Join(w.Home, "private/key") + " link")
			w.wantSecret("a link", w.Shell("cat link"))
		},
		Run: func(w *world) {
			private := filepath.Join(w.Home, "private")
			w.Put(filepath.Join(private, "key"), w.Secret)
			w.live(strings.NewReplacer("KEY", private+"/key", "PRIVATE", private).Replace(leave))
			for range 2 { // both ways
				w.wantNoSecret("the environment", w.Litterbox("env", "shell", "--", "sh", "-c", "cat .git/HEAD .git/index .git/commondir .gitmodules .vscode/key package.json"))
			}
			w.wantContent(filepath.Join(private, "key"), w.Secret)
			if _, err := os.Lstat(filepath.Join(private, "made")); err == nil {
				w.Error("a file was made through a link")
			}
			w.wantNoSecret("git", w.Shell("git status; git log -p; cat .git/HEAD"))
			w.Must("env", "delete", "--stop")
			w.wantContent(filepath.Join(private, "key"), w.Secret)
			w.wantContent(filepath.Join(w.Repo, "README"), "hello\n")
		},
	}
}

// liveModules attacks a submodule: its repository, its file, and the directories
// above it.
func liveModules() attack {
	add := "git init -q ../lib && git -C ../lib commit -q --allow-empty -m x && git -c protocol.file.allow=always submodule --quiet add ../lib deep/lib && git commit -qm lib"
	hurt := func(w *world) string {
		return strings.ReplaceAll(`evil() { git init -q evil; git -C evil config core.fsmonitor "touch CANARY/module; false"; }; evil; `+
			`cp evil/.git/config .git/modules/deep/lib/config; rm -f deep/lib/.git; cp -r evil/.git deep/lib/.git; `+
			`mv deep away && mkdir -p deep/lib && cp -r evil/.git deep/lib/.git; mv deep/lib deep/x && mkdir deep/lib && cp -r evil/.git deep/lib/.git; rm -rf evil`, "CANARY", w.Canary)
	}
	return attack{
		Name: "live: a submodule's repository",
		Control: func(w *world) {
			w.Shell(add)
			w.Shell(hurt(w))
			w.Shell("git status")
			if len(w.touched()) == 0 {
				w.Fatal("git itself does not fall for it")
			}
		},
		Run: func(w *world) {
			w.Shell(add)
			w.live(hurt(w))
			w.Shell("git status; git submodule status; git -C deep/lib status")
			w.wantUntouched("with a changed submodule, git status")
		},
	}
}

// liveFiles changes files at the top that run code on the host.
func liveFiles() attack {
	const change = `echo x > package.json; echo x > new && mv new package.json; mv package.json gone; rm -f package.json; ` +
		`echo x > .vscode/tasks.json; echo x > .vscode/new.json; mv .vscode away; rm -rf .vscode; echo x > Makefile; ln -f Makefile hard && echo x > hard`
	prepare := func(w *world) {
		w.Put(filepath.Join(w.Repo, "package.json"), "{}\n")
		w.Put(filepath.Join(w.Repo, "Makefile"), "all:\n")
		w.Put(filepath.Join(w.Repo, ".vscode/tasks.json"), "{}\n")
	}
	same := func(w *world) bool {
		got := w.Shell("cat package.json Makefile .vscode/tasks.json; ls .vscode")
		return got.Stdout == "{}\nall:\n{}\ntasks.json\n"
	}
	return attack{
		Name: "live: files that run by themselves",
		Control: func(w *world) {
			prepare(w)
			if w.Shell(change); same(w) {
				w.Fatal("nothing was changed where nothing is in the way")
			}
		},
		Run: func(w *world) {
			prepare(w)
			if w.live(change); !same(w) {
				w.Errorf("the files were changed: %s", w.Shell("ls -lA . .vscode; cat package.json Makefile").Stdout)
			}
			got := w.Litterbox("env", "shell", "--", "sh", "-c", "echo x > .envrc")
			if !strings.Contains(got.Stderr, ".envrc is new") {
				w.Errorf("a new file that runs by itself is not named: %s", got.Stderr)
			}
		},
	}
}
