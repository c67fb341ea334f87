package namespace

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
)

// task is one process of a place, as the host sees it: proc_pid_stat(5).
type task struct {
	pid, parent int
	depth       int // below the guest, which has 0
	state       byte
	start       uint64 // clock ticks since boot
	cpu         uint64 // clock ticks, with those of children that were waited for
	threads     int
	resident    int64 // bytes
}

// still tells whether the process runs no code of its own at this moment:
// stopped, held by a debugger, or over.
func (t task) still() bool { return strings.IndexByte("TtZX", t.state) >= 0 }

// over tells whether the process has ended.
func (t task) over() bool { return t.state == 'Z' || t.state == 'X' }

// tree lists the processes of a place, the guest first, parents before
// children. Whoever loses a parent inside becomes the guest's child, so all
// are below it; one that is just being made or adopted can be missed, and is
// there at the next look.
func tree(guest int) []task {
	var found []task
	seen := map[int]bool{}
	var walk func(pid, depth int)
	walk = func(pid, depth int) {
		t, ok := look(pid)
		if !ok || seen[pid] {
			return
		}
		seen[pid], t.depth = true, depth
		found = append(found, t)
		for _, child := range children(pid) {
			walk(child, depth+1)
		}
	}
	walk(guest, 0)
	return found
}

// tasks lists a place's processes in the cheapest way there is.
func tasks(place handle) []task {
	if place.Group == nil || len(place.Group.Parts) == 0 {
		return tree(place.Guest.PID)
	}
	return looks(place.Group)
}

func looks(group *cgroup.Group) []task {
	var found []task
	for _, pid := range group.Processes() {
		if t, ok := look(pid); ok {
			found = append(found, t)
		}
	}
	return found
}

// children reads proc_tid_children(5); every thread has children of its own.
func children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var found []int
	for _, thread := range threads {
		data, err := os.ReadFile(filepath.Join(dir, thread.Name(), "children"))
		if err != nil {
			continue // it has just ended
		}
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// look reads one process. The command's name may hold anything, so fields
// count from the last parenthesis.
func look(pid int) (task, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return task{}, false
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 22 {
		return task{}, false
	}
	at := func(field int) uint64 { // as the manual page counts them
		n, _ := strconv.ParseUint(fields[field-3], 10, 64)
		return n
	}
	t := task{
		pid: pid, parent: int(at(4)), state: fields[0][0], start: at(22),
		cpu: at(14) + at(15) + at(16) + at(17), threads: int(at(20)), resident: int64(at(24)) * int64(os.Getpagesize()),
	}
	return t, true
}
