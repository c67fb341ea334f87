package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// boot is read once per process: it cannot change while we run. The UUID is new with
// each start of the machine (xnu, bsd/kern/kern_sysctl.c).
var boot = sync.OnceValue(func() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "" // then every recorded process counts as gone
	}
	return id
})

// zombie is SZOMB of <sys/proc.h>: the process has ended, with its exit code left.
const zombie = 5

// look reads what the kernel knows about a process. For a missing one it returns
// nothing, which package unix calls EIO.
func look(pid int) (start uint64, over bool, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) {
		err = unix.ESRCH
	}
	if err != nil {
		return 0, false, fmt.Errorf("cannot look at process %d: %w", pid, err)
	}
	// The time of day at which it began, in microseconds: the kernel never changes it.
	began := info.Proc.P_starttime
	return uint64(began.Sec)*1e6 + uint64(began.Usec), info.Proc.P_stat == zombie, nil
}

// Identify describes the running process pid so that it is not taken for a
// later one with the same number.
func Identify(pid int) (sandbox.Process, error) {
	start, _, err := look(pid)
	if err != nil {
		return sandbox.Process{}, err
	}
	return sandbox.Process{PID: pid, StartTime: start, Boot: boot()}, nil
}

// Alive reports whether exactly that process still runs (a zombie does not).
func Alive(p sandbox.Process) bool {
	if p.PID <= 0 || p.Boot == "" || p.Boot != boot() {
		return false
	}
	start, over, err := look(p.PID)
	return err == nil && start == p.StartTime && !over
}

// ShortPath calls use with a path to dir that is short enough for a Unix socket,
// however deep dir lies.
func ShortPath(dir string, use func(short string) error) error { return throughLink(dir, use) }

// CloseOnExec marks every descriptor from first on as close-on-exec. Go does
// that for those it opened; others come from our parent and would live on in
// children that outlast the command.
func CloseOnExec(first int) error {
	open, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// MakeIdle gives the process pid only processor and disk time that no one else
// wants. A setting that fails stays as it was: this is about manners, not results.
func MakeIdle(pid int) {
	const (
		process    = 4      // PRIO_DARWIN_PROCESS, setpriority(2)
		background = 0x1000 // PRIO_DARWIN_BG: little of the disk and the network, too
	)
	_ = unix.Setpriority(process, pid, background)
}

// endPatience is how long a killed process may take to end.
const endPatience = 20 * time.Second

// End kills exactly that process and waits until it has ended. It is no error
// if it has already ended. Nothing here holds a pid as a pidfd does: it could pass
// to another process between the look and the signal, after all others were used.
func End(p sandbox.Process) error {
	if !Alive(p) {
		return nil
	}
	if err := unix.Kill(p.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for deadline := time.Now().Add(endPatience); Alive(p); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("it was killed and does not end")
		}
	}
	return nil
}
