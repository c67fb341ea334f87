package attack_test

import "strings"

// historyAttacks look for objects of the human's repository other than the base.
func historyAttacks() []attack {
	return []attack{
		{
			Name: "read hidden objects of the repository",
			Control: func(w *world) {
				w.hideSecrets()
				w.wantSecret("reading every object outside", w.Shell(everyObject(w.Dir)))
			},
			Run: func(w *world) {
				w.hideSecrets()
				w.Must("create", "victim")
				w.Must("exec", "victim", "--", "/bin/sh", "-c", "echo "+w.Secret+"-of-another-sandbox > file")
				w.sandbox()
				everywhere := everyObject("/")
				got := w.Inside(box, "/bin/sh", "-c", everywhere)
				w.wantNoSecret("reading every object inside", got)
				if !strings.Contains(got.Stdout, "hello") {
					w.Errorf("the base is not readable inside, so nothing was proved: %s%s", got.Stdout, got.Stderr)
				}
				// As well after the sandbox was restarted on the same base.
				w.Must("stop", box)
				w.Must("start", box)
				w.wantNoSecret("reading every object after a restart", w.Inside(box, "/bin/sh", "-c", everywhere))
			},
		},
		{
			Name: "read git's configuration of the host",
			Control: func(w *world) {
				w.configureSecrets()
				w.wantSecret("the configuration outside", w.Shell(configuration))
			},
			Run: func(w *world) {
				w.configureSecrets()
				w.sandbox()
				got := w.Inside(box, "/bin/sh", "-c", configuration)
				w.wantNoSecret("the configuration inside", got)
				if !strings.Contains(got.Stdout, "Test User") {
					w.Errorf("the identity is not readable inside, so nothing was proved: %s%s", got.Stdout, got.Stderr)
				}
			},
		},
	}
}

// hideSecrets puts the secret into objects that the base does not reach.
func (w *world) hideSecrets() {
	w.Helper()
	if got := w.Shell("set -e; echo " + w.Secret + "-reset > key; git add key; git commit -qm oops; git reset -q --hard HEAD~1; " +
		"echo " + w.Secret + "-stashed >> README; git stash -q; " +
		"git checkout -q -b private; echo " + w.Secret + "-branch > other; git add other; git commit -qm private; git tag -a -m " + w.Secret + "-tag v1; git checkout -q main; " +
		"echo " + w.Secret + "-forced > .env; echo .env > .gitignore; git add -f .env; git rm -q --cached .env; git add .gitignore; git commit -qm ignore; " +
		"git notes add -m " + w.Secret + "-note"); got.Code != 0 {
		w.Fatal(got.Stderr)
	}
}

// everyObject prints which lines of the repository's objects, and of those in
// every repository below root, hold a secret or the base's own content. The
// machine's own directories, which are the same inside and outside, may hold
// repositories of any size: they are left out, and nothing but the lines that
// count is printed.
func everyObject(root string) string {
	return `{ git cat-file --batch-all-objects --batch --buffer
git log --all -p --reflog; git stash list -p; git fsck --lost-found --no-dangling; git for-each-ref; git notes list
cat .git/objects/info/alternates .git/packed-refs .git/logs/HEAD .git/FETCH_HEAD .git/ORIG_HEAD; cat .env
for d in $(find ` + root + ` \( -path /usr -o -path /opt -o -path /nix -o -path /snap -o -path /proc -o -path /sys \) -prune -o -name objects -path '*.git/objects' -print 2>/dev/null); do
GIT_OBJECT_DIRECTORY=$d git cat-file --batch-all-objects --batch; done; } | grep -a -e secret- -e '^hello$' | cut -b 1-200 | head -n 1000`
}

func (w *world) configureSecrets() {
	w.Helper()
	w.Git("config", "remote.origin.url", "https://me:"+w.Secret+"@example.com/project.git")
	w.Git("config", "http.extraHeader", "Authorization: Bearer "+w.Secret)
	w.Git("config", "--global", "url.https://"+w.Secret+"@example.com/.insteadOf", "https://example.com/")
	w.Git("config", "--global", "credential.helper", "!echo password="+w.Secret)
}

const configuration = `git config --list --show-origin; cat .git/config $HOME/.gitconfig $HOME/.config/git/config /etc/gitconfig; grep -rs secret- .git; env | grep ^GIT_`
