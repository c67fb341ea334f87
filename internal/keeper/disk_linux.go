package keeper

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func spaceOf(dir string) (space, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return space{}, err
	}
	s := space{
		bytes: int64(fs.Blocks-fs.Bfree) * fs.Bsize, freeBytes: int64(fs.Bavail) * fs.Bsize,
		inodes: int64(fs.Files - fs.Ffree), freeInodes: int64(fs.Ffree),
	}
	return s, nil
}

// usage counts what lies below dir. The tree is hostile and changes meanwhile:
// it is walked by descriptor, no link is followed and no mount is entered.
func usage(dir string) amount {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return amount{hidden: !errors.Is(err, unix.ENOENT)}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return amount{hidden: true}
	}
	c := counter{device: st.Dev, linked: map[uint64]bool{}}
	c.walk(fd, 0)
	return c.amount
}

// counter adds up a tree.
type counter struct {
	amount
	device uint64
	linked map[uint64]bool // files with several names that were counted
}

// maxDepth bounds the descriptors that are open at once.
const maxDepth = 256

// walk counts what is in the directory fd, and closes it.
func (c *counter) walk(fd, depth int) {
	dir := os.NewFile(uintptr(fd), "directory")
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			c.entry(fd, name, depth)
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}

func (c *counter) entry(dir int, name string, depth int) {
	if depth == 0 && (name == "work" || name == "home-work") {
		return // the overlay's own: unreachable from inside, and unreadable for us
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Dev != c.device {
		return
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isDir && st.Nlink > 1 {
		if c.linked[st.Ino] {
			return
		}
		c.linked[st.Ino] = true
	}
	c.bytes += st.Blocks * 512
	c.inodes++
	if !isDir {
		return
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case err == nil && depth < maxDepth:
		c.walk(fd, depth+1)
		return
	case err == nil:
		unix.Close(fd)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return // it is gone, or has become something else
	}
	c.hidden = true
}
