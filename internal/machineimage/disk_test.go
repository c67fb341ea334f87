package machineimage_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machineimage"
)

// builtImage is the directory of an image as a build leaves it, without what would boot.
func builtImage(t *testing.T, version int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "images", "built")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range []string{machineimage.Kernel, machineimage.Initrd, machineimage.Root, machineimage.State} {
		files[name] = "sum of " + name
		write(t, filepath.Join(dir, name), []byte(name))
	}
	data, err := json.Marshal(machineimage.Image{Version: version, System: "linux/amd64", Kernel: "linux-image", Packages: []string{"git"}, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, machineimage.Record), data)
	return dir
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// qcow2 is a disk with a header of version 3, changed by change.
func qcow2(change func(head []byte)) []byte {
	head := make([]byte, 64<<10)
	copy(head, "QFI\xfb")
	binary.BigEndian.PutUint32(head[4:], 3)
	change(head)
	return head
}

// raw is a disk with a table of partitions, some data and much that is zero.
func raw() []byte {
	disk := make([]byte, 1<<20+100)
	disk[510], disk[511] = 0x55, 0xaa
	copy(disk[700<<10:], "data")
	return disk
}

// An image with a disk of the user's has the kernel of the built one and a copy of the
// disk, which serves until the file changes.
func TestWithDisk(t *testing.T) {
	t.Parallel()
	for name, disk := range map[string][]byte{"root.qcow2": qcow2(func([]byte) {}), "root.raw": raw()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built := builtImage(t, 3)
			file := filepath.Join(t.TempDir(), "cloud.img")
			write(t, file, disk)
			dir, err := machineimage.WithDisk(t.Context(), built, file)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string][]byte{
				name: disk, machineimage.Kernel: []byte(machineimage.Kernel), machineimage.Initrd: []byte(machineimage.Initrd), machineimage.State: []byte(machineimage.State),
			} {
				if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s has %d bytes, not %d, %v", path, len(got), len(want), err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, machineimage.Root)); err == nil {
				t.Error("it has the userland that was built")
			}
			if real, err := filepath.EvalSymlinks(filepath.Join(dir, machineimage.Built)); err != nil || real != built {
				t.Errorf("it names %s as the one it has its kernel from, %v", real, err)
			}
			again, err := machineimage.WithDisk(t.Context(), built, file)
			if err != nil || again != dir {
				t.Errorf("the same disk is another image: %s, %v", again, err)
			}
			if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			if again, err = machineimage.WithDisk(t.Context(), built, file); err != nil || again == dir {
				t.Errorf("a changed disk is the same image, %v", err)
			}
			stale := func(image, of string, want bool) {
				t.Helper()
				if disk, got := machineimage.DiskOf(built, image); disk != of || got != want {
					t.Errorf("%s is a copy of %q, stale %t", filepath.Base(image), disk, got)
				}
			}
			stale(built, "", false)
			stale(dir, file, true)
			stale(again, file, false)
			if disk, old := machineimage.DiskOf(built+"-anew", again); disk != file || !old {
				t.Errorf("after another build the copy of %q is not stale", disk)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			stale(again, file, true)
			entries, err := os.ReadDir(filepath.Dir(built))
			if err != nil || len(entries) != 3 {
				t.Errorf("there are %v, %v", entries, err)
			}
		})
	}
}

// What is no disk, or refers to other files of this machine, is refused, and nothing of
// it stays.
func TestWithDiskThatIsNone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		disk []byte
		want string
	}{
		"text":            {[]byte("this is no disk\n"), "it is no disk image"},
		"empty":           {nil, "it is no disk image"},
		"compressed":      {append([]byte("\xfd7zXZ\x00"), raw()...), "xz -d"},
		"stands on":       {qcow2(func(head []byte) { head[15] = 112 }), "it stands on another file"},
		"elsewhere":       {qcow2(func(head []byte) { head[79] = 4 }), "its data is in another file"},
		"encrypted":       {qcow2(func(head []byte) { head[35] = 1 }), "it is encrypted"},
		"damaged":         {qcow2(func(head []byte) { head[79] = 2 }), "QEMU has found errors in it"},
		"of long ago":     {qcow2(func(head []byte) { head[7] = 1 }), "it is of version 1"},
		"only its header": {qcow2(func([]byte) {})[:50], "it is no disk image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			built := builtImage(t, 3)
			file := filepath.Join(t.TempDir(), "cloud.img")
			write(t, file, test.disk)
			if _, err := machineimage.WithDisk(t.Context(), built, file); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v", err)
			}
			entries, err := os.ReadDir(filepath.Dir(built))
			if err != nil || len(entries) != 1 {
				t.Errorf("left is %v, %v", entries, err)
			}
		})
	}
}

func TestWithDiskThatCannotBe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cloud.img")
	if _, err := machineimage.WithDisk(t.Context(), builtImage(t, 3), file); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a missing disk: %v", err)
	}
	write(t, file, raw())
	_, err := machineimage.WithDisk(t.Context(), builtImage(t, 2), file)
	if diff := cmp.Diff("litterbox machine build-image", fault.HintOf(err)); err == nil || diff != "" {
		t.Errorf("with an image of before: %v %s", err, diff)
	}
}
