package landing

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameNew renames a file to a name that must be free.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system without it
		return renameFree(from, to)
	}
	return err
}
