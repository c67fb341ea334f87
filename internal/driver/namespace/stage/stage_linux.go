package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/driver/netns"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"golang.org/x/sys/unix"
)

// Main runs one verb of the child and does not return when it succeeds.
func Main(verb string) {
	// Everything below changes the calling thread (credentials, seccomp,
	// Landlock) and ends in execve on the same thread, which drops all others.
	runtime.LockOSThread()
	status := os.NewFile(statusFD, "status")
	if err := run(verb, status); err != nil {
		fmt.Fprintf(status, "%c%v", StatusError, err)
		os.Exit(125)
	}
	os.Exit(0)
}

func run(verb string, status *os.File) error {
	switch verb {
	case VerbNothing:
		return nil
	case VerbProc:
		return tryProc()
	case VerbNetwork:
		return netns.SetUp()
	case VerbUDP:
		return tryDatagrams()
	case VerbFilter:
		return tryFilters()
	case VerbOverlay:
		return tryOverlay()
	case VerbHold:
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	var sockets *egress.DatagramSockets
	if verb != VerbGuest {
		// Before the configuration comes, which this does not need: the keeper's own
		// preparations take time too.
		var err error
		if sockets, err = netns.Isolate(); err != nil {
			return fmt.Errorf("cannot set up the network: %w", err)
		}
	}
	data, err := readConfig(verb == VerbGuest)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	var config Config
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("cannot decode the configuration: %w", err)
	}
	switch verb {
	case VerbGuest:
		return becomeGuest(config, status)
	case VerbAssemble:
		a := newAssembly(config)
		if err := a.found(); err != nil {
			return err
		}
		if err := a.fill(); err != nil {
			return err
		}
	case VerbEnter:
		// The keeper's mounts, in a namespace of our own; the working
		// directory is the new root, and moves along.
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("cannot leave the mount namespace: %w", err)
		}
	}
	return enter(config, data, sockets)
}

// readConfig reads the configuration to its end. The guest closes it, because
// it holds a key and open descriptors are inherited; the stages keep the number
// taken, so that nothing else gets it before they hand on the next one.
func readConfig(last bool) ([]byte, error) {
	var data []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(configFD, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n > 0:
			data = append(data, buffer[:n]...)
			continue
		case last:
			return data, unix.Close(configFD)
		}
		unix.CloseOnExec(configFD)
		return data, nil
	}
}

// dataFile holds data in anonymous memory and returns a descriptor at its start.
func dataFile(name string, data []byte) (uintptr, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("cannot make a memory file: %w", err)
	}
	for written := 0; written < len(data); {
		n, err := unix.Pwrite(fd, data[written:], int64(written))
		if err != nil {
			return 0, fmt.Errorf("cannot fill a memory file: %w", err)
		}
		written += n
	}
	return uintptr(fd), nil
}

// AmbientCapabilities lists every capability the running kernel knows, so that
// they survive the exec of a process that is not uid 0 in its user namespace.
// Our own bounding set does not count: a container's is small, and that of a
// new user namespace is full (user_namespaces(7)).
func AmbientCapabilities() []uintptr {
	var all []uintptr
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// EINVAL if the kernel does not know it (PR_CAPBSET_READ(2const)).
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err == nil {
			all = append(all, c)
		}
	}
	return all
}
