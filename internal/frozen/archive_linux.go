package frozen

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// Unpack fills the layer from the rest of an archive, which may come from
// anywhere. It refuses the whole archive if it holds anything but directories,
// regular files and links, or a name that leads out of the layer.
func (d *Draft) Unpack(archive *tar.Reader) error {
	top, err := hostile.Directory(d.Dir)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot unpack a layer")
	}
	defer top.Close()
	u := &unpacker{copier: copier{owner: d.box.Owner, to: top}}
	if err := entries(archive, func(h *tar.Header, name string) error { return u.entry(archive, h, name) }); err != nil {
		return err
	}
	for n := len(u.dirs) - 1; n >= 0; n-- { // directories closed to their owner are closed last
		dir := u.dirs[n]
		f, err := hostile.OpenAt(top, dir.name, unix.O_RDONLY|unix.O_DIRECTORY)
		if err == nil {
			err = errors.Join(u.finish(int(f.Fd()), "", &dir.st), f.Close())
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot unpack %q", dir.name)
		}
	}
	return nil
}

type unpacker struct {
	copier
	dirs []unpackedDir
}

type unpackedDir struct {
	name string
	st   unix.Stat_t
}

func (u *unpacker) entry(archive io.Reader, h *tar.Header, name string) error {
	parent, base := filepath.Dir(name), filepath.Base(name)
	if parent == "." {
		parent = ""
	}
	// No link on the way is followed.
	dir, err := hostile.OpenAt(u.to, parent, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fault.Wrap(fault.Denied, err, "cannot import a golden with %q: no directory of the archive holds it", name)
	}
	defer dir.Close()
	st := unix.Stat_t{Mode: uint32(h.Mode & 0o1777), Mtim: unix.NsecToTimespec(h.ModTime.UnixNano())}
	st.Atim = st.Mtim
	st.Uid, st.Gid = uint32(os.Geteuid()), uint32(os.Getegid())
	switch h.Typeflag {
	case tar.TypeDir:
		if err = unix.Mkdirat(int(dir.Fd()), base, 0o700); errors.Is(err, unix.EEXIST) && name == Below {
			err = nil // it was made with the draft
		}
		u.dirs = append(u.dirs, unpackedDir{name, st})
	case tar.TypeSymlink:
		st.Mode |= unix.S_IFLNK
		if err = unix.Symlinkat(h.Linkname, int(dir.Fd()), base); err == nil {
			err = u.finish(int(dir.Fd()), base, &st)
		}
	case tar.TypeLink:
		err = u.link(dir, base, h.Linkname)
	case tar.TypeReg:
		err = u.file(archive, dir, base, &st)
	}
	if err == nil || fault.KindOf(err) == fault.Denied {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "cannot unpack %q", name)
}

func (u *unpacker) file(archive io.Reader, dir *os.File, name string, st *unix.Stat_t) (err error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, archive); err != nil {
		return err
	}
	return u.finish(fd, "", st)
}

// link gives an already unpacked file another name.
func (u *unpacker) link(dir *os.File, name, target string) error {
	parent := filepath.Dir(target)
	from, err := hostile.OpenAt(u.to, parent, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer from.Close()
	var st unix.Stat_t
	if err := unix.Fstatat(int(from.Fd()), filepath.Base(target), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fault.New(fault.Denied, "cannot import a golden with %q: it is a link to no regular file", name)
	}
	return unix.Linkat(int(from.Fd()), filepath.Base(target), int(dir.Fd()), name, 0)
}

// Pack writes a layer to an archive.
func (b Box) Pack(layer string, archive *tar.Writer) error {
	if !isName(layer) {
		return fault.New(fault.Internal, "cannot use the layer %q", layer)
	}
	top, err := hostile.Directory(b.layer(layer))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read a layer")
	}
	defer top.Close()
	root, err := hostile.OpenAt(top, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		p := packer{archive: archive, linked: map[uint64]string{}}
		err = errors.Join(p.directory(root, "", 0), root.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the archive")
	}
	return nil
}

type packer struct {
	archive *tar.Writer
	linked  map[uint64]string
}

func (p *packer) directory(dir *os.File, at string, depth int) error {
	if depth > deepest {
		return fault.New(fault.Unsupported, "cannot pack directories of more than %d levels", deepest)
	}
	names, err := hostile.Names(dir, -1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := p.entry(dir, name, inside(at, name), depth); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) entry(dir *os.File, name, at string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	h := &tar.Header{Name: at, Mode: int64(st.Mode & 0o1777), Format: tar.FormatPAX}
	h.ModTime = time.Unix(st.Mtim.Unix())
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, at+"/"
		if err := p.archive.WriteHeader(h); err != nil {
			return err
		}
		below, done, err := enter(dir, name, &st, unix.O_RDONLY|unix.O_DIRECTORY, 0o500)
		if err != nil {
			return err
		}
		return errors.Join(p.directory(below, at, depth+1), done())
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax+1)
		n, err := unix.Readlinkat(int(dir.Fd()), name, target)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(target[:n])
		return p.archive.WriteHeader(h)
	case unix.S_IFREG:
		if first, ok := p.linked[st.Ino]; ok && samePart(first, at) {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return p.archive.WriteHeader(h)
		}
		if st.Nlink > 1 {
			p.linked[st.Ino] = at
		}
		return p.file(dir, name, h, &st)
	}
	return nil // a golden holds nothing else
}

func samePart(a, b string) bool {
	one, _, _ := splitPart(a)
	other, _, _ := splitPart(b)
	return one == other
}

func (p *packer) file(dir *os.File, name string, h *tar.Header, st *unix.Stat_t) (err error) {
	f, done, err := enter(dir, name, st, unix.O_RDONLY, 0o400)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	h.Typeflag, h.Size = tar.TypeReg, st.Size
	if err := p.archive.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(p.archive, f, st.Size)
	return err
}
