package frozen_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// copyOf takes a snapshot of a running sandbox, checks its content, and returns
// its files.
func copyOf(t *testing.T, b frozen.Box) string {
	t.Helper()
	kept, err := b.Snapshot("", true)
	must(t, err)
	upper := filepath.Join(frozen.Store(b.Dir), kept.Stack[0], "upper")
	if diff := cmp.Diff(listing(t, filepath.Join(b.Dir, "upper")), listing(t, upper)); diff != "" {
		t.Fatalf("what is there (-) and its copy (+):\n%s", diff)
	}
	return upper
}

func inodeOf(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Sys().(*syscall.Stat_t).Ino
}

// A later snapshot of a running sandbox takes unchanged files from the one before,
// and has the content of its moment, whatever a program does to hide a change.
func TestCopiesShareWhatIsUnchanged(t *testing.T) {
	b := box(t, t.TempDir(), "a")
	upper := filepath.Join(b.Dir, "upper")
	for _, name := range []string{"same", "mapped", "hidden", "one/file", "two/file"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(upper, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(upper, name), []byte("first of "+name[:3]), 0o644))
	}
	long := time.Unix(1_600_000_000, 0)
	for _, name := range []string{"one/file", "two/file"} {
		must(t, os.Chtimes(filepath.Join(upper, name), long, long))
	}
	var fs unix.Statfs_t
	must(t, unix.Statfs(upper, &fs))
	if !slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}, int64(fs.Type)) {
		t.Skip("temporary files are on a file system whose files are all copied")
	}
	names := []string{"same", "mapped", "hidden", "one/file", "two/file"}
	unix.Sync()
	shared := func(one, other string) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			return inodeOf(t, filepath.Join(one, name)) != inodeOf(t, filepath.Join(other, name))
		})
	}
	before := copyOf(t, b)
	for deadline := time.Now().Add(time.Minute); ; { // a change counts once it is a second old
		next := copyOf(t, b)
		if shared(before, next) {
			break
		}
		if before = next; time.Now().After(deadline) {
			t.Skip("this kernel does not tell which files have dirty pages")
		}
		time.Sleep(100 * time.Millisecond)
	}

	// Through a mapping, twice: the second time the page is dirty already.
	file, err := os.OpenFile(filepath.Join(upper, "mapped"), os.O_RDWR, 0)
	must(t, err)
	defer file.Close()
	mapped, err := unix.Mmap(int(file.Fd()), 0, 5, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	for _, content := range []string{"FIRST", "fIRST", "FiRST"} {
		copy(mapped, content)
		copyOf(t, b)
	}
	must(t, unix.Munmap(mapped))

	// With its time of modification put back.
	path := filepath.Join(upper, "hidden")
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte("other of hid"), 0o644))
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	copyOf(t, b)

	// Directories that swap places: their files have the same size and time.
	must(t, os.Rename(filepath.Join(upper, "one"), filepath.Join(upper, "x")))
	must(t, os.Rename(filepath.Join(upper, "two"), filepath.Join(upper, "one")))
	must(t, os.Rename(filepath.Join(upper, "x"), filepath.Join(upper, "two")))
	copyOf(t, b)

	// Without the copy before, a file of stamps that says nothing, or an unreadable one.
	must(t, frozen.Sweep(frozen.Store(b.Dir), func() ([]string, error) { return nil, nil }))
	must(t, os.MkdirAll(frozen.Store(b.Dir), 0o700))
	copyOf(t, b)
	must(t, os.WriteFile(filepath.Join(b.Dir, "stamps"), []byte("nothing of the kind"), 0o600))
	copyOf(t, b)
}
