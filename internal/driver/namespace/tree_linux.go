package namespace

import (
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// task is one process of a place, as the host sees it.
type task struct {
	process.Stat
	pid   int
	depth int // below the guest, which has 0
}

// still reports whether the process runs no code of its own at this moment:
// stopped, held by a debugger, or over.
func (t task) still() bool { return strings.IndexByte("TtZX", t.State) >= 0 }

// tree lists the processes of a place, the guest first, parents before
// children. A process inside that loses its parent becomes the guest's child,
// so all are below it. One that is just being made or adopted can be missed,
// and is there the next time.
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
		for _, child := range process.Children(pid) {
			walk(child, depth+1)
		}
	}
	walk(guest, 0)
	return found
}

// tasks lists a place's processes in the cheapest way available.
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

// look reads one process.
func look(pid int) (task, bool) {
	s, err := process.ReadStat(pid)
	return task{Stat: s, pid: pid}, err == nil
}
