package process

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// endPatience is how long a killed process may take to end.
const endPatience = 20 * time.Second

// End kills exactly that process and waits until it has ended. It is not an error
// if it has already ended.
func End(p sandbox.Process) error {
	pidfd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	if !Alive(p) {
		return nil // the pid is another process's by now
	}
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for deadline := time.Now().Add(endPatience); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 100)
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case time.Now().After(deadline):
			return errors.New("it was killed and does not end")
		}
	}
}
