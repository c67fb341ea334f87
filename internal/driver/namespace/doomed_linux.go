package namespace

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// lives reports whether the guest can ever answer again. A process held by the
// freezer of a version 1 group does not die when it is killed, only when it is
// thawed. That guest is already lost.
func (h handle) lives() bool { return process.Alive(h.Guest) && !doomed(h.Guest.PID) }

// doomed reports whether a process was killed and has not died yet (proc(5),
// /proc/pid/status: SigPnd and ShdPnd), or is just dying: PID 1 of a pid
// namespace ends all others first.
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

// killed checks /proc/pid/status for a pending SIGKILL.
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

// exiting reports whether a process has stopped running its program.
func exiting(pid int) bool {
	const flag = 4 // PF_EXITING
	t, ok := look(pid)
	return ok && t.Flags&flag != 0
}
