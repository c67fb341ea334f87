package stage

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/seccomp"
	"github.com/litterbox-sandbox/litterbox/internal/guest"
)

// becomeGuest is the last verb: the program inside, with nothing left to give up.
func becomeGuest(config Config, status *os.File) error {
	socket := os.NewFile(socketFD, "socket")
	listener, err := net.FileListener(socket)
	if err != nil {
		return fmt.Errorf("cannot use the guest's socket: %w", err)
	}
	if err := socket.Close(); err != nil {
		return err
	}
	unix.CloseOnExec(statusFD)
	return guest.Run(guest.Config{
		Listener:   listener,
		Ready:      status,
		PrivateKey: config.GuestKey,
		HostKey:    config.HostKey,
		Workspace:  config.Workspace.Path,
		Home:       config.Home,
		Env:        config.Env,
		Network:    true,
		Notify:     seccomp.InstallNotify,
	})
}

// wait holds a user namespace until whoever needs it closes our standard input.
func wait() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
