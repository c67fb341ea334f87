package landing

import "golang.org/x/sys/unix"

// renameExclusive is renameat2(2), which most file systems have.
func renameExclusive(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}
