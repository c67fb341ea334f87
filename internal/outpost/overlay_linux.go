package outpost

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The meaning of attributes and devices in overlayfs (overlayfs.rst), as it is
// mounted in user namespaces.
const opaqueAttribute = "user.overlay.opaque"

func isOpaque(dir *os.File) (bool, error) {
	value := make([]byte, 8)
	n, err := unix.Fgetxattr(int(dir.Fd()), opaqueAttribute, value)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return false, nil
	}
	return err == nil && string(value[:n]) == "y", err
}

func makeOpaque(dir *os.File) error {
	return unix.Fsetxattr(int(dir.Fd()), opaqueAttribute, []byte("y"), 0)
}

func isWhiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}

func makeWhiteout(dir *os.File, name string) error {
	return unix.Mknodat(int(dir.Fd()), name, unix.S_IFCHR|0o600, 0)
}
