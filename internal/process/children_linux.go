package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Children lists the children of a process, as far as they can be seen. Every
// thread has children of its own (proc_tid_children(5)).
func Children(pid int) []int {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
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
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}
