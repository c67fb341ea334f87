package child

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/keeper/launch"
)

// guestDescriptor is the least number of the guest's program: above all
// descriptors that a child is given, which take the numbers from 0 on before it
// is executed.
const guestDescriptor = 400

// guestProgram is a path that lets children of the keeper execute the guest's
// program, which the keeper was started with. It stays open as long as the
// keeper lives.
func guestProgram() (string, error) {
	fd, err := unix.FcntlInt(launch.GuestDescriptor, unix.F_DUPFD_CLOEXEC, guestDescriptor)
	if err == nil {
		err = unix.Close(launch.GuestDescriptor)
	}
	if err != nil {
		return "", fmt.Errorf("cannot take over the guest's program: %w", err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), nil
}
