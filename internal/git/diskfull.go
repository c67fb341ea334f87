package git

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// diskTrouble finds out whether git failed because the disk with dir is full or
// read-only. Where git does not pass on the system's error, as for the lock of a
// ref, the disk itself shows whether there is room.
func diskTrouble(stderr, dir string) error {
	if err := fault.DiskTrouble(stderr, dir); err != nil {
		return err
	}
	if !strings.Contains(stderr, "writ") && !strings.Contains(stderr, "creat") && !strings.Contains(stderr, "lock") {
		return nil
	}
	var disk unix.Statfs_t
	if unix.Statfs(dir, &disk) == nil && (disk.Bavail == 0 || disk.Files > 0 && disk.Ffree == 0) {
		return &fs.PathError{Op: "write", Path: dir, Err: unix.ENOSPC}
	}
	return nil
}
