package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// FuzzHead lets an agent write anything into its HEAD, its branch and its packed
// refs: reading them without git gives what git reads.
func FuzzHead(f *testing.F) {
	dir := f.TempDir()
	git := func(args ...string) (string, bool) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(dir, ".git"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "LC_ALL=C")
		out, err := cmd.Output()
		return strings.TrimSuffix(string(out), "\n"), err == nil
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"}} {
		if out, ok := git(args...); !ok {
			f.Fatalf("git %q: %s", args, out)
		}
	}
	oid, _ := git("rev-parse", "HEAD")
	f.Add("ref: refs/heads/main\n", oid+"\n", "")
	f.Add("ref: refs/heads/main \n", oid+"\n", "")
	f.Add("ref: refs/heads/main", "", "# pack-refs with: peeled fully-peeled sorted \n"+oid+" refs/heads/main\n")
	f.Add("ref: refs/heads/main\n", "", oid+" refs/heads/main2\n"+oid+" refs/heads/main\n^"+oid+"\n")
	f.Add("ref: refs/heads/main\n", "ref: refs/heads/other\n", "")
	f.Add("ref: refs/heads/../../HEAD\n", "", "")
	f.Add("ref: refs/../config\n", "", "")
	f.Add("ref: refs/heads/unborn\n", "", "")
	f.Add(oid+"\n", "", "")
	f.Add(oid[:39]+"\n", oid, "x")
	f.Fuzz(func(t *testing.T, head, loose, packed string) {
		for path, content := range map[string]string{"HEAD": head, "refs/heads/main": loose, "packed-refs": packed} {
			path = filepath.Join(dir, ".git", path)
			_ = os.Remove(path) // it may not be there
			if content == "" {
				continue
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, ok := readHead(filepath.Join(dir, ".git"))
		if !ok {
			return // git is asked
		}
		if got.Commit != "" && !wire.IsObjectID(got.Commit) {
			t.Fatalf("the commit is %q", got.Commit)
		}
		symbolic, isSymbolic := git("symbolic-ref", "-q", "HEAD")
		if isSymbolic && symbolic != got.Branch {
			t.Errorf("HEAD %q is on %q, git says %q", head, got.Branch, symbolic)
		}
		if commit, found := git("rev-parse", "-q", "--verify", "HEAD"); found && commit != got.Commit {
			t.Errorf("HEAD %q, main %q, packed %q: %q, git says %q", head, loose, packed, got.Commit, commit)
		}
	})
}
