package guest

import (
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// kill ends processes because the sandbox as a whole has used too much: the
// largest ones, or all.
func (g *guest) kill(most int64) (wire.ProcessList, error) {
	if most < 0 {
		return wire.ProcessList{}, fault.New(fault.Invalid, "cannot end %d processes", most)
	}
	type sized struct {
		process
		pages int64
	}
	var all []sized
	if _, err := list(func(p process) bool {
		all = append(all, sized{p, residentPages(p.PID)})
		return false
	}); err != nil {
		return wire.ProcessList{}, err
	}
	slices.SortStableFunc(all, func(a, b sized) int { return int(b.pages - a.pages) })
	if most == 0 {
		// One system call reaches every process, also one that is just being forked:
		// a process with a signal pending cannot fork (fork(2), ERESTARTNOINTR).
		g.children.signalAll(unix.SIGKILL)
	}
	var ended wire.ProcessList
	var killed []process
	for i, p := range all {
		if most > 0 && int64(i) >= most {
			break
		}
		if most > 0 && unix.Kill(p.PID, unix.SIGKILL) != nil {
			continue
		}
		killed = append(killed, p.process)
		if i < killsNamed {
			p.Command = commandOf(p.PID, p.Command)
			ended.Processes = append(ended.Processes, p.Process)
		}
	}
	ended.Processes = fit(ended.Processes)
	awaitEnd(killed)
	return ended, nil
}

// awaitEnd waits until killed processes have begun to end. Until then they count
// as before, and a second measurement would end processes begun since.
func awaitEnd(killed []process) {
	const (
		pause = 2 * time.Millisecond
		most  = 2 * time.Second // the keeper gives up on a guest that takes five
	)
	for deadline := time.Now().Add(most); ; time.Sleep(pause) {
		killed = slices.DeleteFunc(killed, func(was process) bool {
			now, ok := readProcess(was.PID)
			return !ok || now.ticks != was.ticks
		})
		if len(killed) == 0 || time.Now().After(deadline) {
			return
		}
	}
}

// killsNamed is how many processes an answer may name: a fork storm has thousands.
const killsNamed = 16

// residentPages reads the second field of proc_pid_statm(5).
func residentPages(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	return secondNumber(data)
}

func secondNumber(data []byte) int64 {
	var fields [2]int64
	for i, at := 0, 0; i < 2; i++ {
		for ; at < len(data) && data[at] >= '0' && data[at] <= '9'; at++ {
			fields[i] = fields[i]*10 + int64(data[at]-'0')
		}
		at++ // the blank
	}
	return fields[1]
}
