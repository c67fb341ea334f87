package stage

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"

	"github.com/litterbox-sandbox/litterbox/internal/driver/netns"
	"github.com/litterbox-sandbox/litterbox/internal/driver/seccomp"
	"github.com/litterbox-sandbox/litterbox/internal/guest"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"golang.org/x/sys/unix"
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
	ready, err := reportTo(status)
	if err != nil {
		return err
	}
	var datagrams *egress.DatagramSockets
	if sockets, ok := netns.InheritedDatagrams(); ok {
		datagrams = &sockets
	}
	return guest.Run(guest.Config{
		Datagrams:  datagrams,
		Listener:   listener,
		Ready:      ready,
		PrivateKey: config.GuestKey,
		HostKey:    config.HostKey,
		Workspace:  config.Workspace.Path,
		Home:       config.Home,
		Env:        config.Env,
		Network:    true,
		Streams:    config.Streams,
		Nested:     config.Nested,
		Install:    config.installs(),
		SocketDiag: netns.InheritedDiag(),
		Notify: func() (int, error) {
			return seccomp.InstallNotify(config.filter())
		},
	})
}

// reportTo passes the guest's first byte on to the keeper. A keeper that dies
// before that has recorded no lease, so nothing could ever find this guest: it
// ends with the keeper.
func reportTo(status *os.File) (ready *os.File, err error) {
	reader, ready, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	var served atomic.Bool
	go func() {
		// POLLERR: no process reads (poll(2)).
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: statusFD}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if !served.Load() {
			os.Exit(125)
		}
	}()
	go func() {
		first := make([]byte, 1)
		if n, _ := reader.Read(first); n == 1 {
			served.Store(true)
			_, _ = status.Write([]byte{StatusReady})
		}
		reader.Close()
		status.Close()
	}()
	return ready, nil
}
