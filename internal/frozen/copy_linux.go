package frozen

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// copyOut copies the written files into a new layer. stacked says that HOME,
// too, is written by an overlay.
func (b Box) copyOut(name string, parts []part, stacked bool) error {
	layer := b.layer(name)
	if err := hostile.Remove(layer + partial); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot remove %q", layer+partial)
	}
	before, now := copies{}, copies{Layer: name, Files: map[string]stamp{}}
	shows := showsChanges(b.Dir)
	if shows {
		before = b.readCopies()
	}
	for _, p := range parts {
		to := filepath.Join(layer+partial, p.layer)
		c := copier{owner: Owner{-1, -1}, overlaid: !b.Whole && (p.name != Home || stacked)}
		if shows {
			c.since = &since{part: p.layer, before: before, now: &now, began: time.Now()}
		}
		c.since.open(b)
		err := c.tree(filepath.Join(b.Dir, p.name), to)
		if err = errors.Join(err, c.since.close()); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot copy %q of a sandbox", p.name)
		}
	}
	if err := os.Rename(layer+partial, layer); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot finish %q", layer)
	}
	b.writeCopies(now)
	return nil
}

// fill copies a layer to the place where a sandbox writes.
func (b Box) fill(name string) error {
	layer := b.layer(name)
	for _, p := range []string{Upper, Home} {
		at := filepath.Join(b.Dir, p)
		if exists(at) || !exists(filepath.Join(layer, p)) {
			continue
		}
		err := hostile.Remove(at + partial)
		if err == nil {
			err = copyTree(filepath.Join(layer, p), at+partial, b.Owner, false)
		}
		if err == nil {
			err = moveDirectory(at+partial, at)
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot copy %q to a sandbox", p)
		}
	}
	return nil
}

// copier copies one tree that a sandbox has written. Nothing in it is trusted:
// it follows no link and makes no device but the whiteouts of an overlay, and
// copies no set-id bit and none of the overlay's attributes but the one that
// says what a directory hides.
type copier struct {
	owner    Owner // -1: each file's own
	overlaid bool
	noClone  bool              // the file system shares no blocks
	linked   map[uint64]string // files with several names, by inode: the path of the copy
	since    *since            // an earlier copy of the same; nil: all is copied
	to       *os.File          // top of the copy
	buffer   []byte
}

// copyTree copies the directory from to a new one.
func copyTree(from, to string, owner Owner, overlaid bool) error {
	return (&copier{owner: owner, overlaid: overlaid}).tree(from, to)
}

// tree copies the directory from to a new one.
func (c *copier) tree(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	above, err := hostile.Directory(filepath.Dir(from))
	if err != nil {
		return err
	}
	defer above.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	top, err := hostile.Directory(to)
	if err != nil {
		return err
	}
	defer top.Close()
	c.linked, c.to = map[uint64]string{}, top
	var st unix.Stat_t
	name := filepath.Base(from)
	if err := unix.Fstatat(int(above.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return c.directory(above, name, "", &st, 0)
}

// deepest bounds the directories that are open at once.
const deepest = 1000

// directory copies the content of a directory to path, which exists, and then
// the directory's own attributes.
func (c *copier) directory(parent *os.File, name, path string, st *unix.Stat_t, depth int) (err error) {
	if depth > deepest {
		return fault.New(fault.Unsupported, "cannot copy %q: it is too deep", path)
	}
	from, done, err := enter(parent, name, st, unix.O_RDONLY|unix.O_DIRECTORY, 0o500)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	to, err := hostile.OpenAt(c.to, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer to.Close()
	before := c.since.directory(path)
	if before != nil {
		defer before.Close()
	}
	for {
		names, err := hostile.Names(from, 1024)
		for _, name := range names {
			if err := c.entry(from, to, before, name, inside(path, name), depth); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if len(names) == 0 {
			break
		}
	}
	if err := c.attributes(from, to, true); err != nil {
		return err
	}
	return c.finish(int(to.Fd()), "", st)
}

func inside(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// entry copies one entry of the directory from to the directory to; before is that
// of the earlier copy, or nil.
func (c *copier) entry(from, to, before *os.File, name, path string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(from.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return gone(err)
	}
	dir := int(to.Fd())
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if err := unix.Mkdirat(dir, name, 0o700); err != nil {
			return err
		}
		return c.directory(from, name, path, &st, depth+1)
	case unix.S_IFREG:
		if c.since.take(before, to, name, path, &st) {
			return nil
		}
		return c.regular(from, to, name, path, &st)
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax+1)
		n, err := unix.Readlinkat(int(from.Fd()), name, target)
		if err == nil {
			err = unix.Symlinkat(string(target[:n]), dir, name)
		}
		if err != nil {
			return err
		}
	case unix.S_IFIFO:
		if err := unix.Mknodat(dir, name, unix.S_IFIFO|0o600, 0); err != nil {
			return err
		}
	case unix.S_IFCHR:
		if !c.overlaid || st.Rdev != 0 {
			return nil // a device, or a file that would become a whiteout
		}
		return unix.Mknodat(dir, name, unix.S_IFCHR|0o600, 0)
	default:
		return nil // a socket is useless without its process
	}
	return c.finish(dir, name, &st)
}

// gone ignores files that no longer exist.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func (c *copier) regular(from, to *os.File, name, path string, st *unix.Stat_t) (err error) {
	if st.Nlink > 1 {
		if made, ok := c.linked[st.Ino]; ok {
			return unix.Linkat(int(c.to.Fd()), made, int(to.Fd()), name, 0)
		}
	}
	in, done, err := enter(from, name, st, unix.O_RDONLY, 0o400)
	if err != nil {
		return gone(err)
	}
	defer func() { err = errors.Join(err, done()) }()
	fd, err := unix.Openat(int(to.Fd()), name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := c.content(in, out, st.Size); err != nil {
		return err
	}
	if err := c.attributes(in, out, false); err != nil {
		return err
	}
	if st.Nlink > 1 {
		c.linked[st.Ino] = path
	}
	c.since.copied(in, path, st)
	return c.finish(fd, "", st)
}

// content copies a file by sharing its blocks if possible, and otherwise with
// its holes.
func (c *copier) content(in, out *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	if !c.noClone {
		if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
			return nil
		}
		c.noClone = true
	}
	if c.buffer == nil {
		c.buffer = make([]byte, 256<<10)
	}
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // a hole up to the end
		}
		end := size
		switch {
		case err != nil: // a file system that knows no holes
			data = at
		default:
			if end, err = unix.Seek(int(in.Fd()), data, unix.SEEK_HOLE); err != nil {
				end = size
			}
		}
		end = min(end, size)
		if _, err := out.Seek(data, io.SeekStart); err != nil {
			return err
		}
		part := io.NewSectionReader(in, data, end-data)
		if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{part}, c.buffer); err != nil {
			return err
		}
		if end <= at {
			break
		}
		at = end
	}
	return out.Truncate(size)
}

// finish sets the owner, mode and time of a copy; name is "" for the descriptor
// itself.
func (c *copier) finish(fd int, name string, st *unix.Stat_t) error {
	owner := c.owner
	if owner.UID < 0 {
		owner = Owner{int(st.Uid), int(st.Gid)}
	}
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags = unix.AT_EMPTY_PATH
	}
	if os.Geteuid() == 0 {
		if err := unix.Fchownat(fd, name, owner.UID, owner.GID, flags); err != nil {
			return err
		}
	}
	var err error
	switch mode := st.Mode & 0o1777; {
	case name == "":
		err = unix.Fchmod(fd, mode)
	case st.Mode&unix.S_IFMT != unix.S_IFLNK:
		err = unix.Fchmodat(fd, name, mode, 0) // a pipe that was just made
	}
	if err != nil {
		return err
	}
	times := []unix.Timespec{st.Atim, st.Mtim}
	if name == "" {
		return unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join("/proc/self/fd", itoa(fd)), times, 0)
	}
	return unix.UtimesNanoAt(fd, name, times, unix.AT_SYMLINK_NOFOLLOW)
}

// attributes copies the user's extended attributes, and access lists.
func (c *copier) attributes(from, to *os.File, dir bool) error {
	list := make([]byte, 1024)
	n, err := unix.Flistxattr(int(from.Fd()), list)
	if errors.Is(err, unix.ERANGE) {
		list = make([]byte, 64<<10) // XATTR_LIST_MAX, xattr(7)
		n, err = unix.Flistxattr(int(from.Fd()), list)
	}
	if errors.Is(err, unix.ENOTSUP) || err == nil && n == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
		if !c.takes(name, dir) {
			continue
		}
		value := make([]byte, 64<<10) // XATTR_SIZE_MAX
		n, err := unix.Fgetxattr(int(from.Fd()), name, value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), name, value[:n], 0)
		}
		if err != nil && !errors.Is(err, unix.ENODATA) {
			return err
		}
	}
	return nil
}

func (c *copier) takes(name string, dir bool) bool {
	if kind, ok := strings.CutPrefix(name, "user.overlay."); ok {
		// Attributes that overlayfs keeps for an inner overlay are escaped
		// (Linux 6.8).
		return c.overlaid && (dir && kind == "opaque" || strings.HasPrefix(kind, "overlay."))
	}
	return strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_")
}

// enter opens a directory that a sandbox may have closed to its own user, which
// is ours; done closes it again, and restores its mode.
func enter(parent *os.File, name string, st *unix.Stat_t, flags int, need uint32) (f *os.File, done func() error, err error) {
	if st.Mode&need == need || os.Geteuid() == 0 {
		if f, err = hostile.OpenAt(parent, name, flags); err != nil {
			return nil, nil, err
		}
		return f, f.Close, nil
	}
	place, err := hostile.OpenAt(parent, name, unix.O_PATH)
	if err != nil {
		return nil, nil, err
	}
	defer place.Close()
	mode := st.Mode & 0o7777
	at := filepath.Join("/proc/self/fd", itoa(int(place.Fd())))
	if err := unix.Chmod(at, mode|need); err != nil {
		return nil, nil, err
	}
	if f, err = hostile.OpenAt(parent, name, flags); err != nil {
		return nil, nil, errors.Join(err, unix.Chmod(at, mode))
	}
	return f, func() error { return errors.Join(unix.Fchmod(int(f.Fd()), mode), f.Close()) }, nil
}
