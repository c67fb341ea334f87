package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// Main runs one verb of the child and does not return when it succeeds.
func Main(verb string) {
	// A thread gives up its own rights only, until it executes a program.
	runtime.LockOSThread()
	status := os.NewFile(statusFD, "status")
	if err := run(verb, status); err != nil {
		fmt.Fprintf(status, "%c%v", StatusError, err)
		os.Exit(125)
	}
	os.Exit(0)
}

func run(verb string, status *os.File) error {
	if verb == VerbTry {
		return Config{}.giveUp(0)
	}
	data, err := readConfig()
	if err != nil {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	var config Config
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("cannot decode the configuration: %w", err)
	}
	switch verb {
	case VerbWarden:
		return watch(data, status)
	case VerbConfine:
		return config.confine(data)
	case VerbGuest:
		return becomeGuest(config, status)
	}
	return fmt.Errorf("there is no stage %q", verb)
}

// readConfig reads the configuration to its end, and leaves the descriptor
// open: the next stage gets another one under its number. No inherited
// descriptor is ever an os.File that is not closed, because the garbage
// collector would close the number some day, whatever it had become.
func readConfig() ([]byte, error) {
	var data []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(configFD, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case n == 0:
			return data, nil
		default:
			data = append(data, buffer[:n]...)
		}
	}
}

// memory holds data in anonymous memory, read from its start.
func memory(data []byte) (int, error) {
	fd, err := unix.MemfdCreate("config", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("cannot make a memory file: %w", err)
	}
	for written := 0; written < len(data); {
		n, err := unix.Pwrite(fd, data[written:], int64(written))
		if err != nil {
			return -1, fmt.Errorf("cannot fill a memory file: %w", err)
		}
		written += n
	}
	return fd, nil
}

// confine gives up everything that is given up before the guest begins. The
// guest's program is executed again, so that all threads are confined and
// nothing earlier is left in memory.
func (c Config) confine(data []byte) error {
	self, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open our own program: %w", err)
	}
	input, err := memory(data)
	if err != nil {
		return err
	}
	if err := unix.Dup3(input, configFD, 0); err != nil {
		return fmt.Errorf("cannot hand on the configuration: %w", err)
	}
	if err := process.CloseOnExec(statusFD + 1); err != nil {
		return fmt.Errorf("cannot close inherited descriptors: %w", err)
	}
	if err := os.Chdir(c.Workspace.Upper); err != nil {
		return fmt.Errorf("cannot enter the workspace: %w", err)
	}
	if err := c.limit(); err != nil {
		return err
	}
	if err := c.giveUp(self); err != nil {
		return err
	}
	return process.Become(self, []string{"litterbox-guest", VerbGuest}, []string{})
}

// limit sets the limits that the kernel keeps per process; nothing here could
// count processes together.
func (c Config) limit() error {
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil); err != nil {
		return fmt.Errorf("cannot forbid core files: %w", err)
	}
	// Pending signals and locked memory count for the user as a whole: the
	// human's own programs keep most.
	const shares = 4
	for _, resource := range []int{unix.RLIMIT_SIGPENDING, unix.RLIMIT_MEMLOCK} {
		var now unix.Rlimit
		err := unix.Getrlimit(resource, &now)
		if err == nil && now.Max != unix.RLIM_INFINITY {
			most := now.Max / shares
			err = unix.Prlimit(0, resource, &unix.Rlimit{Cur: min(now.Cur, most), Max: most}, nil)
		}
		if err != nil {
			return fmt.Errorf("cannot limit pending signals and locked memory: %w", err)
		}
	}
	if c.OpenFiles <= 0 {
		return nil
	}
	var now unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now)
	if err == nil {
		most := min(uint64(c.OpenFiles), now.Max)
		err = unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
	if err != nil {
		return fmt.Errorf("cannot limit open files: %w", err)
	}
	return nil
}

// watch is the warden: it starts the guest, waits for its end, and then ends
// every process that the guest has left. A process below that loses its parent
// becomes the warden's child, so none gets away. The warden is in no domain, so
// no process inside can signal it.
func watch(data []byte, status *os.File) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot adopt orphans: %w", err)
	}
	order, err := awaitOrders()
	if err != nil {
		return err
	}
	input, err := memory(data)
	if err != nil {
		return err
	}
	guest, err := start(VerbConfine, []uintptr{0, 1, 2, uintptr(input), socketFD, statusFD})
	if err != nil {
		return fmt.Errorf("cannot start the guest: %w", err)
	}
	// The keeper's pipe then ends with the guest.
	if err := errors.Join(unix.Close(configFD), unix.Close(socketFD), status.Close()); err != nil {
		return fmt.Errorf("cannot hand everything to the guest: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			// Orphans end meanwhile, too.
			pid, err := unix.Wait4(-1, nil, 0, nil)
			if pid == guest || err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	select {
	case <-ended:
	case <-order:
		_ = unix.Kill(guest, unix.SIGKILL) // not waited for, so it is still itself
		<-ended
	}
	sweep()
	unix.Exit(0) // at once: the runtime has nothing more to do, and Destroy waits
	return nil
}
