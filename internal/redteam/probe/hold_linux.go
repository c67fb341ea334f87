package probe

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hold does to files what a descriptor open for reading allows, unless
// something other than their permissions forbids it. It changes nothing that
// lasts: it sets what is already set.
func hold(args []string) (any, error) {
	result := outcomes{}
	for _, path := range args {
		at, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue // not every kind of workspace has it
		}
		if errors.Is(err, unix.EACCES) { // not every kind of place shows it
			result["flags "+path], result["lease "+path] = named(err), named(err)
			continue
		}
		if err != nil {
			return nil, err
		}
		result["flags "+path] = named(setFlags(at))
		result["lease "+path] = named(lease(at, path))
		if err := unix.Close(at); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// lease takes a lease and sees whether it holds up a writer.
func lease(at int, path string) error {
	if _, err := unix.FcntlInt(uintptr(at), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return err
	}
	writer, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		writer.Close()
		return unix.ENOLCK // it does not
	}
	_, err = unix.FcntlInt(uintptr(at), unix.F_SETLEASE, unix.F_UNLCK)
	return err
}

func setFlags(at int) error {
	var flags int
	for _, request := range []uintptr{unix.FS_IOC_GETFLAGS, unix.FS_IOC_SETFLAGS} {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(at), request, uintptr(unsafe.Pointer(&flags))); errno != 0 {
			return errno
		}
	}
	return nil
}

// own opens a file of the probe's own and uses it.
func own(use func(at int, path string) error) func() error {
	return func() error {
		file, err := os.CreateTemp(".", "own-")
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		if err := file.Close(); err != nil {
			return err
		}
		at, err := unix.Open(file.Name(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(at)
		return use(at, file.Name())
	}
}
