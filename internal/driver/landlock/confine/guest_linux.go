package confine

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
	"github.com/litterbox-sandbox/litterbox/internal/guest"
	"golang.org/x/sys/unix"
)

// giveUp leaves the calling thread without capabilities or a way to any, in the
// guest's domain, and under the system call filter. The filter comes last,
// because it forbids some of the steps before it.
func (c Config) giveUp(self int) error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		// EPERM: an ordinary user, who has none, and gets none by executing
		// anything once no_new_privs is set. EINVAL: an older kernel.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM {
			return fmt.Errorf("cannot drop capability %d: %w", capability, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot clear ambient capabilities: %w", err)
	}
	// Under no_new_privs root gets no capability by executing a program that
	// it did not have before (capabilities(7), prctl(2)).
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot set no_new_privs: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&header, &make([]unix.CapUserData, 2)[0]); err != nil {
		return fmt.Errorf("cannot drop capabilities: %w", err)
	}
	rules, err := c.domain(false, self)
	if err != nil {
		return err
	}
	if err := rules.Restrict(); err != nil {
		return err
	}
	if err := seccomp.Install(seccomp.Options{Shared: true}); err != nil {
		return fmt.Errorf("cannot install the seccomp filter: %w", err)
	}
	return nil
}

// becomeGuest is the last verb: the program inside.
func becomeGuest(config Config, status *os.File) error {
	socket := os.NewFile(socketFD, "socket")
	listener, err := net.FileListener(socket)
	if err == nil {
		err = errors.Join(socket.Close(), unix.Close(configFD))
	}
	if err != nil {
		return fmt.Errorf("cannot use the guest's socket: %w", err)
	}
	unix.CloseOnExec(statusFD)
	var moved []guest.Moved
	for _, dir := range config.Moved {
		moved = append(moved, guest.Moved(dir))
	}
	return guest.Run(guest.Config{
		Listener:   listener,
		Ready:      status,
		PrivateKey: config.GuestKey,
		HostKey:    config.HostKey,
		Workspace:  config.Workspace.Upper,
		Home:       config.home(),
		Env:        config.Env,
		Notify:     config.confineCommands,
		Shared: &guest.Shared{
			Writable: config.writable(),
			Moved:    moved,
		},
	})
}
