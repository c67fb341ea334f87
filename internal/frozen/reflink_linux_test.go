package frozen_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// If the file system has shared blocks, a copy of a running sandbox takes none
// of its own.
func TestCopiesShareBlocks(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts a file system of its own")
	}
	for _, kind := range []string{"btrfs", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			mkfs, err := exec.LookPath("mkfs." + kind)
			if err != nil {
				if slices.Contains(strings.Split(os.Getenv("LITTERBOX_TEST_REQUIRE"), ","), "mkfs."+kind) {
					t.Fatal("LITTERBOX_TEST_REQUIRE demands it: ", err)
				}
				t.Skip(err)
			}
			image, at := filepath.Join(t.TempDir(), "image"), t.TempDir()
			must(t, os.WriteFile(image, nil, 0o600))
			must(t, os.Truncate(image, 512<<20))
			if output, err := exec.Command(mkfs, "-q", image).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			if output, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
				t.Skipf("cannot mount %s from a file here: %v: %s", kind, err, output)
			}
			t.Cleanup(func() { must(t, unix.Unmount(at, 0)) })

			const size = 32 << 20
			b := box(t, at, "a")
			content := strings.Repeat("not all zeros, and written", size/26)
			must(t, os.WriteFile(filepath.Join(b.Dir, "upper/large"), []byte(content), 0o644))
			before := used(t, at)
			kept, err := b.Snapshot("", true)
			must(t, err)
			if more := used(t, at) - before; more > size/8 {
				t.Errorf("a snapshot of %d bytes takes %d more", size, more)
			}
			copied, err := os.ReadFile(filepath.Join(frozen.Store(b.Dir), kept.ID, "upper/large"))
			if err != nil || string(copied) != content {
				t.Errorf("the copy differs, or %v", err)
			}
			// The control: a copy of another kind is seen.
			before = used(t, at)
			must(t, os.WriteFile(filepath.Join(at, "again"), []byte(content), 0o644))
			if more := used(t, at) - before; more < size/2 {
				t.Errorf("%d more bytes are seen as %d", size, more)
			}
		})
	}
}

// used returns the used bytes of a file system, once all is on disk.
func used(t *testing.T, at string) int64 {
	t.Helper()
	dir, err := os.Open(at)
	must(t, err)
	defer dir.Close()
	must(t, unix.Syncfs(int(dir.Fd())))
	var st unix.Statfs_t
	must(t, unix.Statfs(at, &st))
	return int64(st.Blocks-st.Bfree) * st.Bsize
}
