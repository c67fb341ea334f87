package layer

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// makeWhiteout makes the name that overlayfs takes for "nothing here, whatever
// the layers below have": a character device 0/0. Any user may make one since
// Linux 5.8, because opening it does nothing; an overlayfs refuses it.
func makeWhiteout(files, name string) error {
	path := filepath.Join(files, name)
	err := unix.Mknod(path, unix.S_IFCHR|0o600, 0)
	if errors.Is(err, unix.ENOENT) { // the first change in its directory
		if err = makeDirs(files, filepath.Dir(name)); err == nil {
			err = unix.Mknod(path, unix.S_IFCHR|0o600, 0)
		}
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot hide %q of the layer below", name)
	}
	return nil
}

// makeDirs makes the directories of name below files as a checkout would.
func makeDirs(files, name string) error {
	if name == "." {
		return nil
	}
	if err := makeDirs(files, filepath.Dir(name)); err != nil {
		return err
	}
	path := filepath.Join(files, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	return os.Chmod(path, 0o755) // whatever the umask
}
