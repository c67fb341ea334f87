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
	for line := range bytes.Lines(data) {
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

// exiting tells whether a process runs no more of its program (proc(5),
// /proc/pid/stat: field 9). The name in field 2 may hold anything.
func exiting(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]) // from field 3 on
	if len(fields) < 7 {
		return false
	}
	const flag = 4 // PF_EXITING
	flags, err := strconv.ParseUint(string(fields[6]), 10, 64)
	return err == nil && flags&flag != 0
}
