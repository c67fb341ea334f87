package image

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Names with a meaning in a layer's tar (image-spec, layer.md, "Whiteouts").
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
	auxPrefix      = ".wh..wh." // aufs kept its own files under such names
)

// extract writes the files of one layer below dir, in the form that overlayfs
// reads: a whiteout is a character device 0:0, an opaque directory carries
// user.overlay.opaque (kernel, Documentation/filesystems/overlayfs.rst).
//
// The tar is hostile. Every name is resolved by the kernel as if dir were the
// root (openat2(2), RESOLVE_IN_ROOT), so neither a link nor ".." leads out.
// Devices and pipes are left out; set-user-id bits, owners and extended
// attributes are ignored. Files stay readable and directories writable for their
// owner, who must be able to delete them.
func extract(ctx context.Context, stream io.Reader, dir string, owner Owner, limits Limits) error {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot open %q", dir)
	}
	e := &extraction{root: root, owner: owner, limits: limits, parent: -1, times: map[string]time.Time{}}
	err = e.all(ctx, tar.NewReader(stream))
	if err == nil {
		err = e.setTimes()
	}
	return errors.Join(err, e.close())
}

// extraction is one layer on its way to disk.
type extraction struct {
	root   int
	owner  Owner
	limits Limits

	parentName string // the directory of the last entry, kept open: most share it
	parent     int    // -1 when none is open
	made       int
	unchecked  int64 // bytes since the last look at the disk
	times      map[string]time.Time
}

func (e *extraction) close() error {
	var err error
	if e.parent >= 0 {
		err = unix.Close(e.parent)
	}
	return errors.Join(err, unix.Close(e.root))
}

func (e *extraction) all(ctx context.Context, files *tar.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return fault.Wrap(fault.Canceled, err, "cannot go on unpacking")
		}
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot read a layer's tar")
		}
		if e.made++; e.made > e.limits.entries() {
			return fault.New(fault.Denied, "a layer has more than %d files", e.limits.entries())
		}
		if err := e.entry(header, files); err != nil {
			return sealed(err, "cannot unpack %q", header.Name)
		}
	}
}

// sealed gives a system error a kind.
func sealed(err error, format string, args ...any) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return fault.Wrap("", err, format, args...)
	}
	wrapped := fault.Wrap(fault.Unavailable, err, format, args...)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		wrapped = wrapped.WithHint("df -h, and make room")
	}
	return wrapped
}

// entry makes one file. An earlier entry of the same layer there is replaced,
// except that directories merge.
func (e *extraction) entry(header *tar.Header, content io.Reader) error {
	name, err := cleanName(header.Name)
	if err != nil || name == "." {
		return err
	}
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if strings.Contains("/"+name, "/"+auxPrefix) && base != whiteoutOpaque {
		return nil
	}
	if strings.Contains("/"+dir, "/"+whiteoutPrefix) {
		return fault.New(fault.Invalid, "it lies below a whiteout")
	}
	switch header.Typeflag {
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo, tar.TypeXGlobalHeader:
		return nil
	}
	parent, err := e.open(dir)
	if err != nil {
		return err
	}
	switch {
	case base == whiteoutOpaque:
		return e.hideBelow(parent)
	case strings.HasPrefix(base, whiteoutPrefix):
		return e.whiteout(parent, strings.TrimPrefix(base, whiteoutPrefix))
	}
	switch header.Typeflag {
	case tar.TypeDir:
		err = e.directory(parent, base, uint32(header.Mode))
		e.times[name] = header.ModTime
		return err
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return e.file(parent, base, header, content)
	case tar.TypeSymlink:
		if err := remove(parent, base); err != nil {
			return err
		}
		if err := unix.Symlinkat(header.Linkname, parent, base); err != nil {
			return err
		}
		return errors.Join(e.chown(parent, base), touch(parent, base, header.ModTime))
	case tar.TypeLink:
		return e.link(parent, base, header.Linkname)
	}
	return fault.New(fault.Unsupported, "its type %q is none that a layer has", header.Typeflag)
}

// cleanName is a name below the layer, without a leading slash.
func cleanName(name string) (string, error) {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", fault.New(fault.Denied, "its name leads upwards")
		}
	}
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	if clean == "" {
		return ".", nil
	}
	if len(clean) >= unix.PathMax {
		return "", fault.New(fault.Invalid, "its name is longer than a path can be")
	}
	return clean, nil
}

// open opens the directory called dir, making its missing parts. The descriptor
// belongs to the extraction.
func (e *extraction) open(dir string) (int, error) {
	if e.parent >= 0 && e.parentName == dir {
		return e.parent, nil
	}
	fd, err := e.resolve(dir)
	if errors.Is(err, unix.ENOENT) {
		above, base := path.Split(dir)
		parent, aboveErr := e.open(strings.TrimSuffix(above, "/"))
		if aboveErr != nil {
			return -1, aboveErr
		}
		if err := e.directory(parent, base, 0o755); err != nil {
			return -1, err
		}
		fd, err = e.resolve(dir)
	}
	if err != nil {
		return -1, err
	}
	if e.parent >= 0 {
		err = unix.Close(e.parent)
	}
	e.parent, e.parentName = fd, dir
	return fd, err
}

// resolve opens a directory as the kernel would find it if the layer were the
// root file system.
func (e *extraction) resolve(dir string) (int, error) {
	if dir == "" {
		dir = "."
	}
	return unix.Openat2(e.root, dir, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
}

func (e *extraction) directory(parent int, name string, mode uint32) error {
	err := unix.Mkdirat(parent, name, 0o700)
	if errors.Is(err, unix.EEXIST) {
		var st unix.Stat_t
		if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			hides := isWhiteout(&st)
			if err := unix.Unlinkat(parent, name, 0); err != nil {
				return err
			}
			if err := unix.Mkdirat(parent, name, 0o700); err != nil {
				return err
			}
			if hides {
				// The whiteout was for lower layers' entries there.
				if err := e.hideIn(parent, name); err != nil {
					return err
				}
			}
		}
		err = nil
	}
	if err == nil {
		err = unix.Fchmodat(parent, name, mode&0o1777|0o700, 0)
	}
	return errors.Join(err, e.chown(parent, name))
}

// file writes a regular file.
func (e *extraction) file(parent int, name string, header *tar.Header, content io.Reader) error {
	if header.Size > e.limits.bytes() {
		return fault.New(fault.Denied, "it is larger than a layer may be")
	}
	if err := remove(parent, name); err != nil {
		return err
	}
	fd, err := unix.Openat(parent, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = io.Copy(&roomy{e, f}, content)
	if err == nil {
		err = unix.Fchmod(fd, uint32(header.Mode)&0o777|0o400)
	}
	if err == nil && e.owner.Chown {
		err = unix.Fchown(fd, e.owner.UID, e.owner.GID)
	}
	return errors.Join(err, f.Close(), touch(parent, name, header.ModTime))
}

// roomy writes as long as the disk keeps its reserve.
type roomy struct {
	e *extraction
	f *os.File
}

func (w *roomy) Write(p []byte) (int, error) {
	const interval = 64 << 20
	if w.e.unchecked += int64(len(p)); w.e.unchecked >= interval {
		w.e.unchecked = 0
		var fs unix.Statfs_t
		if err := unix.Fstatfs(int(w.f.Fd()), &fs); err == nil && int64(fs.Bavail)*fs.Bsize < w.e.limits.reserve() {
			return 0, fault.Wrap(fault.Unavailable, unix.ENOSPC, "the disk is nearly full").WithHint("df -h, and make room")
		}
	}
	return w.f.Write(p)
}

// link makes a hard link to a file of the same layer.
func (e *extraction) link(parent int, name, target string) error {
	target, err := cleanName(target)
	if err != nil {
		return err
	}
	dir, base := path.Split(target)
	from, err := e.resolve(strings.TrimSuffix(dir, "/"))
	var st unix.Stat_t
	if err == nil {
		defer unix.Close(from)
		err = unix.Fstatat(from, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR):
		return fault.New(fault.Unsupported, "it is a hard link to %q, which this layer does not have", target)
	case err != nil:
		return err
	case st.Mode&unix.S_IFMT != unix.S_IFREG && st.Mode&unix.S_IFMT != unix.S_IFLNK:
		return fault.New(fault.Invalid, "it is a hard link to %q, which is not a file", target)
	}
	var own unix.Stat_t
	if unix.Fstatat(parent, name, &own, unix.AT_SYMLINK_NOFOLLOW) == nil && own.Ino == st.Ino {
		return nil // a file that is a link to itself stays
	}
	if err := remove(parent, name); err != nil {
		return err
	}
	return unix.Linkat(from, base, parent, name, 0)
}
