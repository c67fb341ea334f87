package namespace

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// lives tells whether the guest can ever answer again. What the freezer of a
// group of version 1 holds does not die when it is killed: it only does so when
// it goes on. Such a guest is lost already.
func (h handle) lives() bool { return process.Alive(h.Guest) && !doomed(h.Guest.PID) }

// doomed tells whether a process was killed and has not died yet (proc(5),
// /proc/pid/status: SigPnd and ShdPnd), or is just dying: PID 1 of a pid
// namespace takes all others with it first.
func doomed(pid int) bool {
	if exiting(pid) {
		return true
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	return killed(data)
}

// killed reads /proc/pid/status for a SIGKILL that waits.
func killed(status []byte) bool {
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "SigPnd" && string(name) != "ShdPnd" {
			continue
		}
		pending, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
		if err == nil && pending&(1<<(unix.SIGKILL-1)) != 0 {
			return true
		}
	}
	return false
}

// exiting tells whether a process runs no more of its program.
func exiting(pid int) bool {
	const flag = 4 // PF_EXITING
	t, ok := look(pid)
	return ok && t.Flags&flag != 0
}
