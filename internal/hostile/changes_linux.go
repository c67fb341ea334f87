package hostile

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Look walks everything below path, on one file system, except directories for
// which skip is true. It keeps names of files that changed after a moment.
func Look(path string, after time.Time, skip func(name string) bool) Changes {
	var found Changes
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return found
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		found.look(os.NewFile(uintptr(fd), path), st.Dev, 0, after, skip)
	}
	return found
}

// look looks at the entries of a directory, and closes it.
func (c *Changes) look(dir *os.File, device uint64, depth int, after time.Time, skip func(string) bool) {
	defer dir.Close()
	for {
		names, err := Names(dir, batch)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != device {
				continue
			}
			directory := st.Mode&unix.S_IFMT == unix.S_IFDIR
			if directory && skip(name) {
				continue
			}
			c.Files++
			at := time.Unix(st.Ctim.Unix())
			if at.After(c.Latest) {
				c.Latest = at
			}
			if !directory {
				c.Bytes += st.Size
				if at.After(after) && len(c.Newest) < newestNames {
					c.Newest = append(c.Newest, name)
				}
				continue
			}
			if depth == maxDepth {
				continue
			}
			if below, err := OpenAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY); err == nil {
				c.look(below, device, depth+1, after, skip)
			}
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}
