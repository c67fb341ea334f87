package guest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// insiders lists the processes inside, but for the guest: all that /proc shows
// where the guest is PID 1, and its descendants elsewhere, where /proc is the
// host's. Whoever loses a parent becomes the guest's child.
func insiders() ([]int, error) {
	if !isInit() {
		return descendants(os.Getpid()), nil
	}
	names, err := readNames("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// descendants reads proc_tid_children(5); every thread has children of its own.
func descendants(pid int) []int {
	threads := "/proc/" + strconv.Itoa(pid) + "/task"
	names, err := readNames(threads)
	if err != nil {
		return nil // it has just ended
	}
	var all []int
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(threads, name, "children"))
		if err != nil {
			continue
		}
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
