package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The directories of the initial file system in which the root of a user's disk is
// mounted, and the memory above it.
const (
	imageDir = "/image"
	aboveDir = "/above"
)

// userland mounts the userland at /new: the file system that was built, or the root on
// a disk of the user's. Nothing of that disk is executed here, and it is never written.
func userland(device string) error {
	if filesystemOf(device) == "squashfs" {
		return mount(device, "/new", "squashfs", unix.MS_RDONLY, "")
	}
	if err := mountImage(device); err != nil {
		return err
	}
	// Mount points are made in memory.
	if err := mount("tmpfs", aboveDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	for _, dir := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(aboveDir, dir), 0o755); err != nil {
			return err
		}
	}
	return mount("overlay", "/new", "overlay", 0, "lowerdir="+imageDir+",upperdir="+aboveDir+"/upper,workdir="+aboveDir+"/work")
}

// partitionPatience is how long the kernel may take to read the table of partitions.
const partitionPatience = 5 * time.Second

// mountImage mounts the first file system of the disk that is a root.
func mountImage(device string) error {
	for deadline := time.Now().Add(partitionPatience); ; time.Sleep(20 * time.Millisecond) {
		var seen []string
		for _, part := range partitions(device) {
			kind := filesystemOf(part)
			if kind == "" {
				continue
			}
			seen = append(seen, kind+" on "+part)
			for _, options := range optionsOf(kind) {
				if rootAt(part, kind, options) {
					return nil
				}
			}
		}
		if time.Now().After(deadline) {
			if len(seen) == 0 {
				seen = []string{"none that is known here"}
			}
			return fmt.Errorf("vm.image has no root of a Linux system: its file systems are %s; ext4, xfs and btrfs are known", strings.Join(seen, ", "))
		}
	}
}

// partitions lists the disk itself, which may have no table, and its partitions.
func partitions(device string) []string {
	found, err := filepath.Glob(filepath.Join("/sys/block", filepath.Base(device), filepath.Base(device)+"*", "partition"))
	if err != nil {
		return []string{device}
	}
	all := []string{device}
	slices.Sort(found)
	for _, file := range found {
		all = append(all, "/dev/"+filepath.Base(filepath.Dir(file)))
	}
	return all
}

// filesystemOf recognizes a file system by its superblock; "" is another one, or none.
func filesystemOf(device string) string {
	f, err := os.Open(device)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, one := range []struct {
		kind, magic string
		at          int64
	}{{"squashfs", "hsqs", 0}, {"xfs", "XFSB", 0}, {"ext4", "\x53\xef", 0x438}, {"btrfs", "_BHRfS_M", 0x10040}} {
		got := make([]byte, len(one.magic))
		if _, err := f.ReadAt(got, one.at); err == nil && string(got) == one.magic {
			return one.kind
		}
	}
	return ""
}

// optionsOf are the mount options to try. A journal is not replayed: the disk cannot be
// written, and other machines use it. Distributions keep a root of btrfs in a subvolume.
func optionsOf(kind string) []string {
	switch kind {
	case "ext4":
		return []string{"noload"}
	case "xfs":
		return []string{"norecovery,nouuid"}
	case "btrfs":
		return []string{"", "subvol=root", "subvol=@", "subvol=@/.snapshots/1/snapshot"}
	}
	return []string{""}
}

// rootAt mounts a file system at imageDir, unless it is not a root.
func rootAt(device, kind, options string) bool {
	if kind == "xfs" || kind == "btrfs" {
		if err := load(OrderOf(kind)); err != nil {
			fmt.Println("litterbox: cannot load the modules of", kind+":", err)
		}
	}
	if err := mount(device, imageDir, kind, unix.MS_RDONLY|unix.MS_NODEV, options); err != nil {
		fmt.Println("litterbox:", err)
		return false
	}
	_, users := os.Lstat(filepath.Join(imageDir, "etc/passwd"))
	_, programs := os.Stat(filepath.Join(imageDir, "usr/bin"))
	if err := errors.Join(users, programs); err == nil {
		return true
	}
	if err := unix.Unmount(imageDir, 0); err != nil {
		fmt.Println("litterbox: cannot unmount", device+":", err)
	}
	return false
}
