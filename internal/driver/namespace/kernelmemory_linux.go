package namespace

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pageTables is the size of a process's page tables, which is not part of its
// resident memory: merely reading empty memory makes them grow.
func pageTables(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	size, _ := kib(status, "VmPTE:")
	return size
}

// memoryFiles adds up files of memfd_create(2) and of System V that processes
// hold open: their content is resident nowhere as long as it is not mapped. It
// looks for no longer than exactTime, so among very many descriptors it can
// miss some.
func memoryFiles(pids []int) int64 {
	type file struct{ device, inode uint64 }
	seen := map[file]bool{}
	var bytes int64
	deadline := time.Now().Add(exactTime)
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd"
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it has just ended
		}
		for _, entry := range entries {
			if time.Now().After(deadline) {
				return bytes
			}
			path := filepath.Join(dir, entry.Name())
			if to, err := os.Readlink(path); err != nil || !strings.HasPrefix(to, "/memfd:") && !strings.HasPrefix(to, "/SYSV") {
				continue
			}
			var st syscall.Stat_t
			if syscall.Stat(path, &st) != nil || seen[file{st.Dev, st.Ino}] {
				continue
			}
			seen[file{st.Dev, st.Ino}] = true
			bytes += st.Blocks * 512
		}
	}
	return bytes
}
