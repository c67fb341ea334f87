package landing

import "golang.org/x/sys/unix"

// renameExclusive is renamex_np(2), which APFS and HFS+ have.
func renameExclusive(from, to string) error {
	return unix.RenamexNp(from, to, unix.RENAME_EXCL)
}
