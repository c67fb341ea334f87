package hosts_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// A golden stays on the host that it was built on. Where the host does not answer, a
// deleted one is cleared away there later.
func TestGolden(t *testing.T) {
	h := open(t)
	h.add()
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "machine = \"big\"\n")
	h.Put(filepath.Join(h.Repo, ".gitignore"), "built/\n")
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "[container]\nsetup-command = [\"sh\", \"-c\", \"mkdir built; echo once >built/it; echo note >~/note\"]\n")
	h.Git("add", "--all")
	h.Git("commit", "--quiet", "--message", "what a golden is made from")
	h.Must("trust")
	h.Must("build", "--machine", "big")
	h.Must("create", "box")
	if got := h.Inside("box", "sh", "-c", "cat built/it ~/note"); got.Stdout != "once\nnote\n" {
		t.Errorf("it begins with %+v", got)
	}
	kept := func() []string {
		found, err := filepath.Glob(h.left()[0] + "/goldens/*")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := kept(); len(got) != 1 {
		t.Fatalf("the host has the goldens %q", got)
	}
	h.far.refuse(true)
	h.Must("golden", "delete")
	if got := h.Must("golden", "list"); !strings.Contains(got, "no goldens") {
		t.Errorf("listed is\n%s", got)
	}
	h.far.refuse(false)
	h.Must("build", "--skip-sync")
	if got := kept(); len(got) != 1 {
		t.Errorf("built again, the host has the goldens %q", got)
	}
	h.Must("delete", "--force", "--purge", "box")
	h.Must("machine", "remove", "big")
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "")
	if got := h.Must("golden", "list"); !strings.Contains(got, "no goldens") {
		t.Errorf("its machine is removed, and listed is\n%s", got)
	}
	if left := h.left(); len(left) > 0 {
		t.Errorf("removed, there are %q", left)
	}
}

// What users try on their machine they can try on a host, too.
func TestRedteam(t *testing.T) {
	h := open(t)
	h.add()
	got := h.Litterbox("redteam", "--machine", "big", "--only", "pid1", "--json")
	var report struct {
		Driver       string
		Closed, Open int
	}
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil || got.Code != 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	if !strings.HasSuffix(report.Driver, ":big") || report.Closed != 3 || report.Open > 0 {
		t.Errorf("%s", got.Stdout)
	}
	h.refused([]string{"redteam", "--machine", "small"}, `there is no machine "small"`, "litterbox machine list")
}

// A golden of a host goes into a file and comes back, there and to this machine, and
// one of this machine goes there.
func TestGoldenCarried(t *testing.T) {
	h := open(t)
	h.add()
	h.Put(filepath.Join(h.Repo, ".gitignore"), "built/\n")
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), "[container]\nsetup-command = [\"sh\", \"-c\", \"mkdir built; echo once >built/it; echo note >~/note\"]\n")
	h.Git("add", "--all")
	h.Git("commit", "--quiet", "--message", "what a golden is made from")
	h.Must("trust")
	begins := func(golden string, args ...string) {
		t.Helper()
		h.Must(append([]string{"create", "box", "--golden", golden}, args...)...)
		if got := h.Inside("box", "sh", "-c", "cat built/it ~/note"); got.Stdout != "once\nnote\n" {
			t.Errorf("with %s it begins with %+v", golden, got)
		}
		h.Must("delete", "--force", "--purge", "box")
	}
	far, near := filepath.Join(h.Dir, "far.tgz"), filepath.Join(h.Dir, "near.tgz")
	h.Must("build", "--machine", "big")
	h.Must("golden", "export", "-o", far)
	h.Must("golden", "import", far, "--name", "again")
	begins("again", "--machine", "big")
	h.Must("build", "here")
	h.Must("golden", "export", "here", "-o", near)
	h.Must("golden", "import", near, "--name", "there", "--machine", "big")
	begins("there", "--machine", "big")
	// Where it was built is not known any more.
	h.Must("golden", "delete")
	h.Must("golden", "delete", "again")
	h.Must("golden", "delete", "there")
	h.Must("machine", "remove", "big")
	if left := h.left(); len(left) > 0 {
		t.Errorf("removed, there are %q", left)
	}
	h.Must("golden", "import", far, "--name", "home")
	begins("home")
}
