package process

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// boot is read once per process: it cannot change while we run.
var boot = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // no proc: then every recorded process counts as gone
	}
	return strings.TrimSpace(string(data))
})

// Identify describes the running process pid so that it is not taken for a
// later one with the same number.
func Identify(pid int) (sandbox.Process, error) {
	s, err := ReadStat(pid)
	if err != nil {
		return sandbox.Process{}, err
	}
	return sandbox.Process{PID: pid, StartTime: s.Start, Boot: boot()}, nil
}

// Alive reports whether exactly that process still runs (a zombie does not).
func Alive(p sandbox.Process) bool {
	if p.PID <= 0 || p.Boot == "" || p.Boot != boot() {
		return false
	}
	s, err := ReadStat(p.PID)
	return err == nil && s.Start == p.StartTime && !s.Over()
}

// ShortPath calls use with a path to dir that is short enough for a Unix
// socket's 108 bytes (unix(7)), however deep dir lies.
func ShortPath(dir string, use func(short string) error) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(use(fmt.Sprintf("/proc/self/fd/%d", file.Fd())), file.Close())
}

// CloseOnExec marks every descriptor from first on as close-on-exec. Go does
// that for those it opened; others come from our parent and would live on in
// children that outlast the command.
func CloseOnExec(first int) error {
	if unix.CloseRange(uint(first), math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil { // Linux 5.11
		return nil
	}
	// A filter older than this system call refuses it.
	open, err := os.ReadDir("/proc/self/fd")
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

// MakeIdle gives the process pid, and everything it starts from now on, only
// processor and disk time that no one else wants. A setting that fails stays as
// it was: this is about manners, not results.
func MakeIdle(pid int) {
	const (
		leastFavourable = 19      // setpriority(2)
		whoProcess      = 1       // IOPRIO_WHO_PROCESS, ioprio_set(2)
		classIdle       = 3 << 13 // IOPRIO_CLASS_IDLE
	)
	_ = unix.Setpriority(unix.PRIO_PROCESS, pid, leastFavourable)
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, uintptr(pid), classIdle)
}
