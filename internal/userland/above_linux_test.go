package userland_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/userland"
)

// Entries with another owner than the top of a root file system are made again,
// without those that not everyone can read, and nothing else is.
func TestAdopt(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: files are given to others")
	}
	const other = 42
	root, to := t.TempDir(), filepath.Join(t.TempDir(), "part", "upper")
	for name, file := range map[string]struct {
		mode  fs.FileMode // of a directory where the name ends with a slash
		owner int
	}{
		"etc/passwd": {0o644, 0}, "etc/shadow": {0o640, other}, "etc/secret": {0o640, other}, "etc/ours": {0o644, 0}, "etc/theirs": {0o644, other},
		"var/lib/apt/lists/partial/": {0o700, other}, "var/lib/apt/lists/partial/file": {0o644, 0}, "var/mail/": {0o775, other}, "dev/null": {0o644, other},
	} {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil && strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err == nil {
			err = os.WriteFile(path, []byte("root:$y$secret:"), 0o600)
		}
		if err == nil {
			err = os.Chmod(path, file.mode)
		}
		if err == nil {
			err = os.Chown(path, 0, file.owner)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	above := userland.Above{Root: root, To: to, Owner: userland.Owner{UID: 1234, GID: 1234, Chown: true}}
	if err := above.Adopt(context.Background()); err != nil {
		t.Fatal(err)
	}
	var names []string
	err := filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if st.Uid != 1234 || st.Gid != 1234 {
			t.Errorf("%s belongs to %d:%d", path, st.Uid, st.Gid)
		}
		names = append(names, strings.TrimPrefix(path, to))
		return err
	})
	want := []string{"", "/etc", "/etc/shadow", "/etc/theirs", "/var", "/var/lib", "/var/lib/apt", "/var/lib/apt/lists", "/var/lib/apt/lists/partial", "/var/mail"}
	if diff := cmp.Diff(want, names); diff != "" || err != nil {
		t.Errorf("the layer (- want, + got):\n%s%v", diff, err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "etc/shadow")); err != nil || string(got) != "root:*:19000:0:99999:7:::\n" {
		t.Errorf("the passwords are %q, %v", got, err)
	}
	if _, err := unix.Lgetxattr(filepath.Join(to, "var/lib/apt/lists/partial"), "user.overlay.opaque", nil); err != nil {
		t.Errorf("what was closed shows what is below: %v", err)
	}
}

// Without the right to give files away, a directory of another user is refused.
func TestAdoptRefuses(t *testing.T) {
	t.Parallel()
	root := "/usr"
	if os.Geteuid() == 0 {
		root = t.TempDir()
		if err := os.Chown(root, 42, 42); err != nil {
			t.Fatal(err)
		}
	}
	err := userland.Above{Root: root, To: filepath.Join(t.TempDir(), "upper")}.Adopt(context.Background())
	if fault.KindOf(err) != fault.Unsupported || fault.HintOf(err) == "" {
		t.Errorf("got %v, try %q", err, fault.HintOf(err))
	}
}
