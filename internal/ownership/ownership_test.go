package ownership_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
)

// foreign is an id that runs nothing in these tests.
const foreign = 54321

func TestDirectory(t *testing.T) {
	top := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	make := func(name string, mode os.FileMode) string {
		path := filepath.Join(top, name)
		must(os.MkdirAll(path, 0o700))
		must(os.Chmod(path, mode))
		return path
	}
	link := func(name, target string) string {
		path := filepath.Join(top, name)
		must(os.Symlink(target, path))
		return path
	}
	own := make("own", 0o755)
	make("open", 0o777)
	make("open/below", 0o700)
	make("sticky", 0o777|os.ModeSticky)
	make("sticky/below", 0o700)
	for path, refused := range map[string]string{
		own:                                   "",
		make("private", 0o700):                "",
		make("sticky/mine", 0o700):            "",
		link("link", "own"):                   "",
		link("chain", "link/../chain2"):       "",
		link("chain2", top+"/private"):        "",
		filepath.Join(top, "open"):            "every user may write to",
		filepath.Join(top, "open/below"):      "every user may write to",
		link("astray", "open/below"):          "every user may write to",
		link("loop", "loop"):                  "too many levels",
		filepath.Join(top, "own/nothing"):     "no such file",
		filepath.Join(top, "private/../none"): "no such file",
	} {
		real, err := ownership.Directory(path)
		switch want, _ := filepath.EvalSymlinks(path); {
		case refused == "" && (err != nil || real != want):
			t.Errorf("%s: %q, %v; want %q", path, real, err, want)
		case refused != "" && (err == nil || !strings.Contains(err.Error(), refused)):
			t.Errorf("%s: %q, %v; want %q", path, real, err, refused)
		}
	}
	if err := ownership.Check(filepath.Join(own, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	if _, err := ownership.Directory("own"); err == nil {
		t.Error("a relative path passes")
	}
}

// A file of another user is refused, wherever it is in the path, and so is one
// of root's alone where a directory of the user's is meant.
func TestForeignOwner(t *testing.T) {
	top := t.TempDir()
	if os.Geteuid() != 0 {
		if _, err := ownership.Directory("/usr"); fault.KindOf(err) != fault.Denied {
			t.Errorf("root's directory as ours: %v", err)
		}
		if err := ownership.Check("/usr"); err != nil {
			t.Errorf("root's directory: %v", err)
		}
		return // only root can give a file away
	}
	deep := filepath.Join(top, "theirs", "ours")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink("/usr", link); err != nil {
		t.Fatal(err)
	}
	if _, err := ownership.Directory(deep); err != nil {
		t.Fatalf("before it is given away: %v", err)
	}
	for _, path := range []string{filepath.Dir(deep), link} {
		if err := os.Lchown(path, foreign, foreign); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{deep, filepath.Dir(deep), link} {
		_, err := ownership.Directory(path)
		if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "uid 54321") || !strings.Contains(fault.HintOf(err), "sudo -H") {
			t.Errorf("%s: %v (hint %q)", path, err, fault.HintOf(err))
		}
		if err := ownership.Check(path); fault.KindOf(err) != fault.Denied {
			t.Errorf("Check of %s: %v", path, err)
		}
	}
}

// An entry is judged as its whole path is, and a link by its target.
func TestEntry(t *testing.T) {
	top, err := ownership.Directory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"own": 0o700, "open": 0o777, "sticky": 0o777 | os.ModeSticky} {
		path := filepath.Join(top, name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode), os.Symlink(name, path+"-link")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"own", "open", "sticky", "own-link", "open-link", "sticky-link", "none"} {
		entry, whole := ownership.Entry(top, name), ownership.Check(filepath.Join(top, name))
		if fault.KindOf(entry) != fault.KindOf(whole) || errors.Is(entry, fs.ErrNotExist) != errors.Is(whole, fs.ErrNotExist) {
			t.Errorf("%s as an entry: %v; by its path: %v", name, entry, whole)
		}
		if wrong := strings.HasPrefix(name, "open"); (fault.KindOf(entry) == fault.Denied) != wrong {
			t.Errorf("%s: %v", name, entry)
		}
	}
}
