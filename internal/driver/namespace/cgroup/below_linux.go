package cgroup

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// maxBelow bounds how many groups below one of ours are removed in one attempt.
// Each attempt removes that many, so the next one clears away a sandbox that
// made more.
const maxBelow = 10000

// clearBelow removes the groups that a sandbox with inner namespaces has made in
// its own group, the deepest first, and kills the processes in them: the groups
// outlive the processes that made them, and a group that contains some cannot be
// removed. Any that stay show when the group itself is removed.
//
// The sandbox chose the names and the depth, so each group is reached from the
// one above it.
func (p Part) clearBelow() {
	top, err := os.Open(p.Dir)
	if err != nil {
		return
	}
	at := top // the current group; the way up is in above
	type level struct {
		name string
		rest []string // groups in it that are yet to be removed
	}
	above := []level{{rest: groupsIn(at)}}
	for range 2 * maxBelow {
		now := &above[len(above)-1]
		if last := len(now.rest) - 1; last >= 0 {
			name := now.rest[last]
			now.rest = now.rest[:last]
			// The leaf is ours: its processes are the sandbox's.
			ours := len(above) == 1 && p.Version == 2 && name == leaf
			below, err := hostile.Enter(at, name)
			if err != nil {
				continue
			}
			_ = at.Close() // only read, here and below
			at, above = below, append(above, level{name, groupsIn(below)})
			if !ours {
				endIn(at)
			}
			continue
		}
		if len(above) == 1 {
			break
		}
		// A group never gets another parent.
		fd, err := unix.Openat(int(at.Fd()), "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		_ = at.Close()
		at = os.NewFile(uintptr(fd), p.Dir)
		_ = unix.Unlinkat(fd, now.name, unix.AT_REMOVEDIR) // the next attempt removes one that is still dying
		above = above[:len(above)-1]
	}
	_ = at.Close()
}

// groupsIn lists the groups directly in a group.
func groupsIn(group *os.File) []string {
	entries, _ := hostile.Entries(group, maxBelow) // an unreadable one stays
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// endIn kills the processes in a group, frozen or not.
func endIn(group *os.File) {
	put := func(name, text string) {
		if file, err := hostile.OpenAt(group, name, unix.O_WRONLY); err == nil {
			_, _ = file.WriteString(text) // a group that cannot be written to stays busy
			_ = file.Close()
		}
	}
	put("cgroup.kill", "1") // version 2, Linux 5.14
	put("cgroup.freeze", "0")
	put("freezer.state", "THAWED") // in version 1 a frozen process does not die
	for _, pid := range processesIn(group) {
		pidfd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if slices.Contains(processesIn(group), pid) { // the number may have been reused
			_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		}
		_ = unix.Close(pidfd)
	}
}

func processesIn(group *os.File) []int {
	file, err := hostile.OpenAt(group, "cgroup.procs", unix.O_RDONLY)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, _ := io.ReadAll(io.LimitReader(file, 1<<20)) // a threaded group of version 2 lists none
	var found []int
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
			found = append(found, pid)
		}
	}
	return found
}
