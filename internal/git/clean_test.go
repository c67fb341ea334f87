package git_test

import (
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// A checkout that is found clean without git must be clean for git too; and
// the ordinary one is found clean, or git would be started for nothing.
func TestPlainlyClean(t *testing.T) {
	// Another time at each use: git compares times by the second only.
	settled := func(month string) string {
		return "find . -path ./.git -prune -o -exec touch -h -t 2024" + month + "010000 {} +; git update-index -q --refresh"
	}
	settle := settled("02")
	base := gittest.Repository(t)
	for name, test := range map[string]struct {
		change string // a script, in a settled checkout
		plain  bool
	}{
		"as committed":                {"true", true},
		"ignored file":                {"echo x >x.o", true},
		"ignored directory":           {"mkdir build; echo x >build/x", true},
		"ignored by info/exclude":     {"mkdir -p .git/info; echo /mine >>.git/info/exclude; echo x >mine", true},
		"tracked in an ignored place": {"mkdir build; echo x >build/x; git add -f build/x; git commit -qm more; " + settle, true},
		"another commit":              {"echo more >README; git commit -qam more; " + settle, true},
		"detached HEAD":               {"git checkout -q --detach", true},
		"rules of a directory":        {"echo '!*.o' >src/.gitignore; git add -A; git commit -qm more; echo x >src/x.o; " + settle, false},
		"new file":                    {"echo x >new", false},
		"empty directory":             {"mkdir empty", false},
		"only touched":                {"touch README", false},
		"copied over with its times":  {"cp -p README x.o; mv x.o README", false},
		"another link":                {"ln -sfn src link", false},
		"link to a directory's copy":  {"mv src build; ln -s build src", false},
		"removed":                     {"rm docs/one.md", false},
		"directory for a file":        {"rm README; mkdir README; echo x >README/x.o", false},
		"staged":                      {"echo x >new; git add new; " + settle, false},
		"to be added":                 {"echo x >new; git add -N new; " + settle, false},
		"soft reset":                  {"echo more >README; git commit -qam more; git reset -q --soft HEAD^; " + settle, false},
		"assumed unchanged":           {"git update-index --assume-unchanged README; echo x >README", false},
		"skipped":                     {"git update-index --skip-worktree README; echo x >README", false},
		"written after the index":     {"touch -t 202301010000 .git/index", false},
		"repository in it":            {"git init -q src/inner; git -C src/inner commit -q --allow-empty -m x", false},
		"submodule":                   {"git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub; git commit -qm sub; git -C sub commit -q --allow-empty -m y", false},
		"split index":                 {"git update-index --split-index; echo x >new; git add new; git commit -qm more", false},
		"no index":                    {"rm .git/index", false},
		"ignore file that is a link":  {"echo '*' >build; ln -s ../build src/.gitignore; echo x >src/new", false},
		"unmerged":                    {"git checkout -qb other; echo a >README; git commit -qam a; git checkout -q -; echo b >README; git commit -qam b; git merge -q other >/dev/null || true", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "project")
			gittest.Shell(t, base, "cp -a . "+dir+"; cd "+dir+"; "+settled("01")+"; "+test.change)
			r := gittest.Open(t, dir)
			plain := git.PlainlyClean(t, r)
			if plain != test.plain {
				t.Errorf("seen to be clean: %v", plain)
			}
			if plain {
				if status := gittest.Git(t, dir, "status", "--porcelain"); status != "" {
					t.Errorf("git says:\n%s", status)
				}
			}
		})
	}
}
