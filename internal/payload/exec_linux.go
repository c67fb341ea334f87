package payload

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// self is the running program; /proc keeps it reachable after an update has
// replaced the file.
func self() (*os.File, error) {
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open our own program")
	}
	return executable(file)
}

// executable copies the program into anonymous memory if its file system is
// mounted noexec, or if others may not execute it.
func executable(file *os.File) (*os.File, error) {
	var fs unix.Statfs_t
	info, err := file.Stat()
	if err == nil {
		err = unix.Fstatfs(int(file.Fd()), &fs)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if fs.Flags&unix.ST_NOEXEC == 0 && info.Mode().Perm()&0o001 != 0 {
		return file, nil
	}
	defer file.Close()
	syscall.ForkLock.RLock() // as in unpack
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.MemfdCreate("litterbox-guest", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		// Before kernel 6.3 every memory file could be executed.
		fd, err = unix.MemfdCreate("litterbox-guest", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot hold the guest program in memory")
	}
	writer := os.NewFile(uintptr(fd), "litterbox-guest")
	defer writer.Close()
	if _, err := io.Copy(writer, file); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot hold the guest program in memory")
	}
	// A file open for writing cannot be executed (ETXTBSY).
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
}
