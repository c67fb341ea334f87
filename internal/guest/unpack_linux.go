package guest

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// unpack extracts a tar stream below a directory. os.Root keeps it there,
// regardless of names and links in the stream or the directory.
func (g *guest) unpack(x *exchange) (wire.Empty, error) {
	into, err := g.path(x.request.Path)
	if err != nil {
		return wire.Empty{}, err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return wire.Empty{}, wrap(err, "cannot make %q", into)
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return wire.Empty{}, wrap(err, "cannot open %q", into)
	}
	defer root.Close()
	aside := g.aside(into)
	defer aside.Close() // nil is not an open file, and refuses
	in := &incoming{r: x.in}
	e := &extraction{root: root, aside: aside, buffer: make([]byte, piece)}
	defer e.end()
	if err := e.all(tar.NewReader(in)); err != nil {
		return wire.Empty{}, wrap(err, "cannot copy into %q", into)
	}
	// The stream goes on after the archive's end mark: tar pads its blocks.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return wire.Empty{}, fault.Wrap(fault.Unavailable, err, "cannot copy into %q", into)
	}
	return wire.Empty{}, nil
}

// aside is the repository's own directory for files being unpacked into the
// workspace, where no commit taken meanwhile sees half a file. It is nil outside
// the workspace and if there is no repository.
func (g *guest) aside(into string) *os.File {
	if into != g.Workspace && !strings.HasPrefix(into, g.Workspace+"/") {
		return nil
	}
	dir, err := os.OpenFile(filepath.Join(g.Workspace, ".git"), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	return dir
}

// extraction is an archive on its way into a directory.
type extraction struct {
	root  *os.Root
	aside *os.File // the directory that files grow in; nil: their target directory

	// The directory of the entry before stays open, as files of one directory
	// follow each other.
	at     string
	parent *os.File // nil: none
	to, in int      // it, and the directory in which its files grow

	buffer []byte
	small  smallFiles
}

// enter opens the directory of an entry, and makes it if it is missing.
func (e *extraction) enter(dir string) error {
	if e.parent != nil && e.at == dir {
		return nil
	}
	if err := e.leave(); err != nil {
		return err
	}
	if err := e.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	parent, err := e.root.Open(dir)
	if err != nil {
		return err
	}
	e.at, e.parent, e.to = dir, parent, int(parent.Fd())
	e.in = e.to
	if e.aside != nil && oneDevice(e.aside, parent) {
		e.in = int(e.aside.Fd())
	}
	return nil
}

// leave closes that directory, when its files are there.
func (e *extraction) leave() error {
	err := e.small.wait()
	if e.parent != nil {
		_ = e.parent.Close() // it was only read
		e.parent = nil
	}
	return err
}

// end leaves, whatever came of it.
func (e *extraction) end() {
	_ = e.leave() // reported before
	e.small.end()
}

// all makes every entry. Directories get their modes and times last: they
// may be read-only, and each entry below changes the time.
func (e *extraction) all(archive *tar.Reader) error {
	var directories []*tar.Header
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot read the archive")
		}
		if header.Name, err = inside(header.Name); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			directories = append(directories, header)
		}
		if err := e.one(header, archive); err != nil {
			if failed := e.small.wait(); failed != nil {
				return failed
			}
			return wrap(err, "cannot make %q", header.Name)
		}
	}
	if err := e.leave(); err != nil {
		return err
	}
	for i := len(directories) - 1; i >= 0; i-- {
		d := directories[i]
		if err := errors.Join(e.root.Chmod(d.Name, fs.FileMode(d.Mode).Perm()), e.root.Chtimes(d.Name, time.Time{}, d.ModTime)); err != nil {
			return wrap(err, "cannot make %q", d.Name)
		}
	}
	return nil
}

// inside checks a name of the archive.
func inside(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fault.New(fault.Invalid, "the archive's %q leaves the target", name)
	}
	return clean, nil
}

// one makes one entry, or has it made.
func (e *extraction) one(header *tar.Header, content io.Reader) error {
	if header.Typeflag != tar.TypeReg {
		if err := e.leave(); err != nil { // it may take the place of that directory
			return err
		}
	}
	if header.Typeflag == tar.TypeDir {
		if err := e.root.MkdirAll(header.Name, 0o755); err != nil {
			return err
		}
		return e.root.Chmod(header.Name, 0o700|fs.FileMode(header.Mode).Perm())
	}
	if err := e.enter(path.Dir(header.Name)); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeReg && header.Size <= smallFile {
		held := make([]byte, header.Size)
		if _, err := io.ReadFull(content, held); err != nil {
			return err
		}
		return e.small.give(header.Name, func() error { return e.place(header, bytes.NewReader(held), nil) })
	}
	if err := e.small.wait(); err != nil { // the same name may come twice
		return err
	}
	return e.place(header, content, e.buffer)
}

// place puts one entry into the directory that is open. An existing file is never
// written through, as it may be a link, and never missing: it is replaced in one step
// by a whole entry, also when this process is killed.
func (e *extraction) place(header *tar.Header, content io.Reader, buffer []byte) (err error) {
	in, to := e.in, e.to
	partial := partialPrefix + rand.Text()
	taken := false
	defer func() {
		if taken && header.Typeflag != tar.TypeLink {
			return
		}
		// It is still there after a failure, and when a link to the same file was
		// there already: the kernel then renames nothing.
		if left := unix.Unlinkat(in, partial, 0); left != nil && left != unix.ENOENT {
			err = errors.Join(err, left)
		}
	}()
	switch header.Typeflag {
	case tar.TypeReg:
		err = growFile(in, partial, header, content, buffer)
	case tar.TypeSymlink:
		err = unix.Symlinkat(header.Linkname, in, partial)
	case tar.TypeLink:
		err = e.link(header.Linkname, in, partial)
	default:
		err = fault.New(fault.Invalid, "neither a file, a directory nor a link")
	}
	if err != nil {
		return err
	}
	err = takePlace(in, partial, to, path.Base(header.Name))
	taken = err == nil
	return err
}

// oneDevice reports whether a file of one directory can be renamed into the other.
func oneDevice(a, b *os.File) bool {
	var sa, sb unix.Stat_t
	return unix.Fstat(int(a.Fd()), &sa) == nil && unix.Fstat(int(b.Fd()), &sb) == nil && sa.Dev == sb.Dev
}

// link makes a hard link to a file of the directory.
func (e *extraction) link(target string, in int, partial string) error {
	target, err := inside(target)
	if err != nil {
		return err
	}
	parent, err := e.root.Open(path.Dir(target))
	if err != nil {
		return err
	}
	defer parent.Close()
	return unix.Linkat(int(parent.Fd()), path.Base(target), in, partial, 0)
}

func growFile(in int, partial string, header *tar.Header, content io.Reader, buffer []byte) error {
	fd, err := unix.Openat(in, partial, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), partial)
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, content, buffer)
	err = errors.Join(err, f.Chmod(fs.FileMode(header.Mode).Perm()), f.Close())
	if err != nil {
		return err
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(header.ModTime.UnixNano())}
	return unix.UtimesNanoAt(in, partial, times, unix.AT_SYMLINK_NOFOLLOW)
}

// takePlace renames an entry to where it belongs. An empty directory makes way,
// as it does for tar and git.
func takePlace(in int, partial string, to int, name string) error {
	err := unix.Renameat(in, partial, to, name)
	if err != unix.EISDIR {
		return err
	}
	if unix.Unlinkat(to, name, unix.AT_REMOVEDIR) != nil {
		return err
	}
	return unix.Renameat(in, partial, to, name)
}
