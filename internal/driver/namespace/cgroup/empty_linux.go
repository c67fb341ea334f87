package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// EmptyGroup is a group without processes.
type EmptyGroup struct {
	Name    string // the name of the sandbox's group
	Dir     string
	Spare   bool // it was made while another one was busy
	version int
}

// sandboxID matches the end of our groups' names.
var sandboxID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9-]*-[0-9a-f]{8}$`)
})

// Empty lists the groups whose names are prefix and the id of a sandbox, that
// are older than age and belong to us, and that contain no process, themselves
// or below.
func Empty(where []Hierarchy, prefix string, age time.Duration) []EmptyGroup {
	var found []EmptyGroup
	for _, h := range where {
		dirs, err := os.ReadDir(h.Parent)
		if err != nil {
			continue // it is just gone, or is another user's
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

// empty reports whether no process is in the group or in any below it.
func (g EmptyGroup) empty() bool {
	if g.version == 2 { // of the whole tree
		return strings.Contains(read(filepath.Join(g.Dir, "cgroup.events")), "populated 0")
	}
	groups := 0
	err := filepath.WalkDir(g.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		}
		if groups++; groups > maxBelow || read(filepath.Join(path, "cgroup.procs")) != "" {
			return errNotEmpty
		}
		return nil
	})
	return err == nil
}

var errNotEmpty = errors.New("it is not empty")

// Remove removes the group and those below it. rmdir(2) does not remove one in
// which a process has begun to run.
func (g EmptyGroup) Remove() error { return Part{Version: g.version, Dir: g.Dir}.remove(time.Time{}) }
