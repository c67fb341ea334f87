package cgroup

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EmptyGroup is a group in which no process is.
type EmptyGroup struct {
	Name    string // what the sandbox's group is called
	Dir     string
	Spare   bool // it was made while another one was busy
	version int
}

// sandboxID is what the names of our groups end with.
var sandboxID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9-]*-[0-9a-f]{8}$`)
})

// Empty lists the groups whose names are prefix and the id of a sandbox, that
// are older than age and belong to us, and in which, or below which, nothing is.
func Empty(where []Hierarchy, prefix string, age time.Duration) []EmptyGroup {
	var found []EmptyGroup
	for _, h := range where {
		dirs, err := os.ReadDir(h.Parent)
		if err != nil {
			continue // it has just gone, or is somebody else's
		}
		for _, entry := range dirs {
			id, ours := strings.CutPrefix(entry.Name(), prefix)
			id, _, spare := strings.Cut(id, spareMark)
			info, err := entry.Info()
			if !ours || !sandboxID().MatchString(id) || err != nil || time.Since(info.ModTime()) < age {
				continue
			}
			if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
				continue
			}
			if g := (EmptyGroup{prefix + id, filepath.Join(h.Parent, entry.Name()), spare, h.Version}); g.empty() {
				found = append(found, g)
			}
		}
	}
	return found
}

func (g EmptyGroup) empty() bool {
	dirs, err := os.ReadDir(g.Dir)
	if err != nil {
		return false
	}
	for _, entry := range dirs {
		// Version 2 keeps processes in a leaf.
		if entry.IsDir() && (g.version != 2 || entry.Name() != leaf || read(filepath.Join(g.Dir, leaf, "cgroup.procs")) != "") {
			return false
		}
	}
	return read(filepath.Join(g.Dir, "cgroup.procs")) == ""
}

// Remove removes the group. rmdir(2) does not remove one in which something has
// begun to run.
func (g EmptyGroup) Remove() error {
	if g.version == 2 {
		_ = unix.Rmdir(filepath.Join(g.Dir, leaf)) // without it the next one fails
	}
	if err := unix.Rmdir(g.Dir); err != nil && err != unix.ENOENT {
		return &os.PathError{Op: "rmdir", Path: g.Dir, Err: err}
	}
	return nil
}
