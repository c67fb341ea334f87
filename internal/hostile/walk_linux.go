package hostile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the descriptors that a walk has open at once; deeper files are
// not visited.
const maxDepth = 256

// Walk calls visit for path and everything below it that can be read, on one
// file system, however it changes meanwhile.
func Walk(path string, visit func(Entry)) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return
	}
	visit(entryOf(&st))
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		walk(os.NewFile(uintptr(fd), path), st.Dev, 0, visit)
	}
}

// walk visits the entries of a directory, and closes it.
func walk(dir *os.File, device uint64, depth int, visit func(Entry)) {
	defer dir.Close()
	for {
		names, err := Names(dir, batch)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != device {
				continue
			}
			visit(entryOf(&st))
			if st.Mode&unix.S_IFMT != unix.S_IFDIR || depth == maxDepth {
				continue
			}
			if below, err := OpenAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY); err == nil {
				walk(below, device, depth+1, visit)
			}
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}

func entryOf(st *unix.Stat_t) Entry {
	return Entry{Device: st.Dev, Inode: st.Ino, Bytes: st.Blocks * 512} // stat(2)
}

// batch is how many names of a directory are held at once.
const batch = 1024

// isNotThere reports whether a name has gone meanwhile.
func isNotThere(err error) bool { return errors.Is(err, unix.ENOENT) }
