package local

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"golang.org/x/sys/unix"
)

// changes are the upper directory and the frozen ones below it.
type changes struct {
	written layer.Written
	began   int64
	plain   bool // a copy: overlay attributes in it are the sandbox's own, and mean nothing
}

// Changes implements workspace.Workspace.
func (f Files) Changes(context.Context) (workspace.Changes, error) {
	began := time.Now().UnixNano()
	written, err := layer.OpenWritten(f.Upper(), f.Frozen, f.Copy)
	if err != nil {
		return nil, err
	}
	return &changes{written: written, began: began, plain: f.Copy}, nil
}

func (c *changes) Began() int64 { return c.began }

func (c *changes) Close() error {
	c.written.Close()
	return nil
}

func (c *changes) Top() (workspace.Dir, error) {
	d, err := c.written.Top()
	if err != nil {
		return nil, fault.Wrap("", err, "cannot open what the sandbox changed")
	}
	return &dir{d, c.plain}, nil
}

func (c *changes) File(name string) (workspace.File, error) {
	parent, base := path.Split(name)
	if parent != "" {
		parent = parent[:len(parent)-1]
	}
	d, err := c.written.Walk(parent)
	if err != nil {
		return nil, unreadable(err)
	}
	defer d.Close()
	return (&dir{d, c.plain}).File(base)
}

// dir is a merged directory.
type dir struct {
	*layer.WrittenDir
	plain bool
}

// Concurrent implements workspace.Concurrent: what a directory is made of does not
// change while it is open.
func (d *dir) Concurrent() {}

func (d *dir) Entry(name string) (workspace.Entry, error) {
	_, st, err := d.Lookup(name)
	if errors.Is(err, unix.ENOENT) {
		return workspace.Entry{}, err
	}
	if err != nil {
		return workspace.Entry{}, unreadable(err)
	}
	return entryOf(&st), nil
}

func (d *dir) Opaque() bool { return d.WrittenDir.Opaque }

func (d *dir) Dir(name string) (workspace.Dir, error) {
	below, err := d.Directory(name)
	if err != nil {
		return nil, unreadable(err)
	}
	return &dir{below, d.plain}, nil
}

// part returns the topmost part that has a name.
func (d *dir) part(name string) (layer.Part, error) {
	if len(d.Parts) == 1 {
		return d.Parts[0], nil
	}
	part, _, err := d.Lookup(name)
	return part, err
}

func (d *dir) Link(name string) ([]byte, error) {
	part, err := d.part(name)
	if err != nil {
		return nil, unreadable(err)
	}
	// Through the directory's descriptor no link is followed.
	target := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(int(part.Dir.Fd()), name, target)
	if err != nil {
		return nil, unreadable(err)
	}
	return target[:n], nil
}

func (d *dir) File(name string) (workspace.File, error) {
	part, err := d.part(name)
	if err != nil {
		return nil, unreadable(err)
	}
	at := name
	if d.Path != "" {
		at = d.Path + "/" + name
	}
	f, err := part.Root.Open(at, unix.O_RDONLY)
	if err != nil {
		return nil, unreadable(err)
	}
	opened, err := d.opened(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return opened, nil
}

func (d *dir) opened(f *os.File) (*file, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, unreadable(err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, workspace.Changing
	}
	if !d.plain {
		if _, err := layer.OverlayAttributes(f); err != nil {
			return nil, err
		}
	}
	return &file{f, entryOf(&st)}, nil
}

func (d *dir) Repository() bool {
	_, st, err := d.Lookup(".git")
	if err != nil {
		return false
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		return true
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	g, err := d.Directory(".git")
	if err != nil {
		return false
	}
	defer g.Close()
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, st, err := g.Lookup(name); err != nil || layer.IsWhiteout(&st) {
			return false
		}
	}
	return true
}

func entryOf(st *unix.Stat_t) workspace.Entry {
	e := workspace.Entry{
		Kind: workspace.Special, Executable: st.Mode&unix.S_IXUSR != 0, Size: st.Size, Held: st.Blocks * 512, // stat(2)
		Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Ino: st.Ino,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.Kind = workspace.Regular
	case unix.S_IFLNK:
		e.Kind = workspace.Link
	case unix.S_IFDIR:
		e.Kind = workspace.Directory
	default:
		if layer.IsWhiteout(st) {
			e.Kind = workspace.Whiteout
		}
	}
	return e
}

// file is a regular file of the sandbox.
type file struct {
	f     *os.File
	entry workspace.Entry
}

func (f *file) Entry() workspace.Entry { return f.entry }

func (f *file) Close() error { return f.f.Close() }

func (f *file) Read(p []byte) (int, error) {
	n, err := f.f.Read(p)
	if err != nil && err != io.EOF {
		err = unreadable(err)
	}
	return n, err
}

func (f *file) Again() (workspace.Entry, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.f.Fd()), &st); err != nil {
		return workspace.Entry{}, unreadable(err)
	}
	return entryOf(&st), nil
}

// Holes adds up the holes of the file (lseek(2), SEEK_HOLE), which is read from
// its beginning afterwards. A file system without holes has none.
func (f *file) Holes() (int64, error) {
	var holes int64
	fd, size := int(f.f.Fd()), f.entry.Size
	for at := int64(0); at < size; {
		data, err := unix.Seek(fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole up to the end
			holes += size - at
			break
		}
		if err != nil {
			return 0, unreadable(err)
		}
		holes += min(data, size) - at
		if at, err = unix.Seek(fd, data, unix.SEEK_HOLE); err != nil {
			if errors.Is(err, unix.ENXIO) {
				break // it became shorter
			}
			return 0, unreadable(err)
		}
	}
	if _, err := f.f.Seek(0, io.SeekStart); err != nil {
		return 0, unreadable(err)
	}
	return holes, nil
}

// unreadable sorts errors of reading a sandbox's file: refusals by the file itself and
// files that vanished meanwhile concern that path, anything else ends the reading.
func unreadable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EAGAIN):
		return workspace.Stays{Why: "it cannot be read"}
	case errors.Is(err, unix.ENAMETOOLONG):
		return workspace.Stays{Why: "its path is too long"}
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO),
		errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL):
		return workspace.Changing
	}
	var f *fault.Error
	var stays workspace.Stays
	if errors.As(err, &f) || errors.As(err, &stays) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "cannot read a file of the sandbox")
}
