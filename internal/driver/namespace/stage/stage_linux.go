package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

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
	case VerbWait:
		return wait()
	case VerbNothing:
		return nil
	case VerbNetwork:
		return network()
	}
	data, err := readConfig(verb == VerbGuest)
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	var config Config
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("cannot decode the configuration: %w", err)
	}
	switch {
	case verb == VerbGuest:
		return becomeGuest(config, status)
	case verb == VerbEnter:
		return enter(config, data)
	case config.Shift != 0:
		if err := assemble(config); err != nil {
			return err
		}
		return delegate(config, data, status)
	default:
		if err := assemble(config); err != nil {
			return err
		}
		return enter(config, data)
	}
}

// readConfig reads the configuration to its end. The guest closes it, because
// it holds a key and what is open is inherited; the stages keep the number
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

// delegate starts the second stage in a user namespace of its own and reports
// its pid. Its parent, the keeper, is a subreaper and adopts it.
func delegate(config Config, data []byte, status *os.File) error {
	input, err := dataFile("config", data)
	if err != nil {
		return err
	}
	if err := os.Chdir(config.Root); err != nil {
		return fmt.Errorf("cannot change to the new root: %w", err)
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"litterbox-guest", VerbEnter}, &syscall.ProcAttr{
		Env:   []string{},
		Files: []uintptr{0, 1, 2, input, socketFD, statusFD},
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
				unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
			UidMappings:                []syscall.SysProcIDMap{{ContainerID: config.User.UID, HostID: config.Shift, Size: 1}},
			GidMappings:                []syscall.SysProcIDMap{{ContainerID: config.User.GID, HostID: config.Shift, Size: 1}},
			GidMappingsEnableSetgroups: true, // the supplementary groups of root must go
			AmbientCaps:                AmbientCapabilities(),
			Setsid:                     true,
		},
	})
	if err != nil {
		return fmt.Errorf("cannot start the second stage: %w", err)
	}
	_, err = fmt.Fprintf(status, "%c%s\n", StatusProcess, strconv.Itoa(pid))
	return err
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
func AmbientCapabilities() []uintptr {
	var all []uintptr
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err == nil && has == 1 {
			all = append(all, c)
		}
	}
	return all
}
