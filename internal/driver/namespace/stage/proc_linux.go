package stage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// tryProc mounts a proc of its own over the existing one, in namespaces that end
// with this process. The kernel refuses that when parts of the existing one are
// covered, as in most containers (mount_too_revealing). Before that it sets the
// host name, to its present value: Podman's filter refuses just that call.
func tryProc() error {
	var is unix.Utsname
	if err := unix.Uname(&is); err != nil {
		return fmt.Errorf("cannot read the host name: %w", err)
	}
	if err := unix.Sethostname([]byte(unix.ByteSliceToString(is.Nodename[:]))); err != nil {
		return fmt.Errorf("cannot set the host name: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("cannot mount /proc: %w", err)
	}
	return nil
}
