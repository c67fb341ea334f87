package layer

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzGitmodules puts anything into .gitmodules: nothing that it names can be
// a place of git's own or outside, and each value is what git reads.
func FuzzGitmodules(f *testing.F) {
	for _, seed := range []string{
		"", "[submodule \"a\"]\n\tpath = a\n\turl = ../a\n", "[submodule \"a.b\"]\npath=x/\n[SUBMODULE \"c\"]\npath = \"y\\n\"\n",
		"[include]\n\tpath = /etc/passwd\n[submodule \"i\"]\npath\n", "[submodule \"../x\"]\n path = .git/hooks\n", "[submodule.old]\npath = z\n",
		"[submodule \"a\"]\npath = 1\npath = 2\n", "[submodule \"a\nb\"]\npath=q\n", "[submodule \"\"]\npath=e\n", "\xef\xbb\xbf[submodule \"a\"]\r\npath = a\r\n",
	} {
		f.Add([]byte(seed))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := parseGitmodules(t.Context(), content)
		if err != nil {
			return
		}
		path := filepath.Join(dir, "gitmodules")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.ContainsAny(e.name+e.path, "\x00") {
				t.Errorf("%q names %+v", content, e)
			}
			if e.name == "" || strings.Contains(e.name, "\n") {
				continue // git config cannot be asked for it
			}
			asked, err := exec.Command("git", "config", "--file", path, "--no-includes", "-z", "--get", "submodule."+e.name+".path").Output()
			want, ok := string(asked), err == nil
			if ok && strings.TrimSuffix(strings.TrimSuffix(want, "\x00"), "/") != e.path {
				t.Errorf("%q: %q is at %q, git says %q", content, e.name, e.path, want)
			}
		}
	})
}
