package layer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"golang.org/x/sys/unix"
)

// Root is a directory below which paths are opened as package hostile does:
// without ever following a link, leaving it or waiting, whatever happens to it
// meanwhile.
type Root struct{ Dir *os.File }

func OpenDir(path string) (Root, error) {
	f, err := hostile.Directory(path)
	if err != nil {
		return Root{}, fault.Wrap(fault.Unavailable, err, "cannot open %q", path)
	}
	return Root{f}, nil
}

func (r Root) Open(path string, flags int) (*os.File, error) {
	return hostile.OpenAt(r.Dir, path, flags)
}

func StatAt(dir *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func IsWhiteout(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// Stack looks paths up in the read-only layers. A set of layers is a
// slice of their numbers, topmost first: those in which the parent is visible.
type Stack []Root

// Lookup finds what the layers of set have at path, whose parent is a directory
// in each of them; for a directory, also the layers it is merged from.
func (l Stack) Lookup(set []int, path string) (Kind, []int, error) {
	var dirs []int
	for n, i := range set {
		st, err := StatAt(l[i].Dir, path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return KindNone, nil, fault.Wrap(fault.Internal, err, "cannot look up %q in a layer", path)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if len(dirs) == 0 && !IsWhiteout(&st) {
				return KindFile, nil, nil
			}
			break
		}
		dirs = append(dirs, i)
		if n == len(set)-1 {
			break
		}
		d, err := l[i].Open(path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return KindNone, nil, fault.Wrap(fault.Internal, err, "cannot look up %q in a layer", path)
		}
		opaque, err := OverlayAttributes(d)
		_ = d.Close()
		if err != nil {
			return KindNone, nil, err
		}
		if opaque {
			break
		}
	}
	if len(dirs) == 0 {
		return KindNone, nil, nil
	}
	names, err := l.list(dirs, path)
	if err != nil {
		return KindNone, nil, err
	}
	if len(names) == 0 {
		return KindGitlink, dirs, nil
	}
	return KindDir, dirs, nil
}

// top finds the topmost file at path, whose parent is a directory in each
// layer of set; ok is false if there is none, or if it is hidden.
func (l Stack) top(set []int, path string) (layer int, st unix.Stat_t, ok bool, err error) {
	for _, i := range set {
		st, err := StatAt(l[i].Dir, path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return 0, st, false, fault.Wrap(fault.Internal, err, "cannot look up %q in a layer", path)
		}
		return i, st, !IsWhiteout(&st), nil
	}
	return 0, st, false, nil
}

// list returns the names in a directory merged from set, before whiteouts of
// upper layers are taken into account.
func (l Stack) list(set []int, path string) ([]string, error) {
	var names []string
	for _, i := range set {
		d, err := l[i].Open(path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot read %q in a layer", path)
		}
		found, err := hostile.Names(d, -1)
		_ = d.Close()
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot read %q in a layer", path)
		}
		names = append(names, found...)
	}
	return names, nil
}

// Read returns a regular file of the layers, nil if there is none.
func (l Stack) Read(set []int, path string) ([]byte, error) {
	for _, i := range set {
		st, err := StatAt(l[i].Dir, path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil, err
		}
		f, err := l[i].Open(path, unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return ReadLimited(f, git.MaxRules)
	}
	return nil, nil
}

// Size returns the size of the regular file at a path of any depth. Layers
// have no opaque directories: a path is hidden by a whiteout, or by a file of
// another kind, at the path or above it.
func (l Stack) Size(path string) (int64, error) {
	for i := range l {
		f, err := l[i].Open(path, unix.O_PATH)
		switch {
		case errors.Is(err, unix.ENOENT):
			continue
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
			return 0, nil
		case err != nil:
			return 0, fault.Wrap(fault.Internal, err, "cannot look up %q in a layer", path)
		}
		var st unix.Stat_t
		err = unix.Fstat(int(f.Fd()), &st)
		_ = f.Close() // O_PATH
		if err != nil {
			return 0, fault.Wrap(fault.Internal, err, "cannot look up %q in a layer", path)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return 0, nil
		}
		return st.Size, nil
	}
	return 0, nil
}

// OverlayAttributes reads the attributes of overlayfs on a file or directory.
// It refuses everything that changes the merged view and that we do not
// follow: redirect, metacopy, xattr whiteouts (Documentation/filesystems/
// overlayfs.rst, Linux 6.17), and anything unknown.
func OverlayAttributes(f *os.File) (opaque bool, err error) {
	buf := make([]byte, 1024)
	n, err := unix.Flistxattr(int(f.Fd()), buf)
	if errors.Is(err, unix.ERANGE) {
		buf = make([]byte, 64<<10) // XATTR_LIST_MAX, xattr(7)
		n, err = unix.Flistxattr(int(f.Fd()), buf)
	}
	if errors.Is(err, unix.ENOTSUP) {
		return false, nil
	}
	if err != nil {
		return false, fault.Wrap(fault.Internal, err, "cannot list the attributes of %q", f.Name())
	}
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		kind, ok := strings.CutPrefix(name, "user.overlay.")
		if !ok {
			kind, ok = strings.CutPrefix(name, "trusted.overlay.")
		}
		if !ok || strings.HasPrefix(kind, "overlay.") { // an inner overlay's own, escaped (Linux 6.8)
			continue
		}
		switch kind {
		case "origin", "impure", "uuid", "nlink", "upper", "protattr":
			continue // bookkeeping that no file shows
		case "opaque":
			value := make([]byte, 8)
			n, err := unix.Fgetxattr(int(f.Fd()), name, value)
			if err != nil {
				return false, fault.Wrap(fault.Internal, err, "cannot read the attributes of %q", f.Name())
			}
			if string(value[:n]) == "y" {
				opaque = true
				continue
			}
		}
		return false, fault.New(fault.Unsupported, "cannot read %q: it carries the overlay attribute %q", f.Name(), name).
			WithHint("mount the overlay with redirect_dir=off,metacopy=off")
	}
	return opaque, nil
}

func (l Stack) Expand(set []int, path string, found []string) ([]string, error) {
	kind, dirs, err := l.Lookup(set, path)
	if err != nil || kind == KindNone {
		return found, err
	}
	if kind != KindDir {
		return append(found, path), nil
	}
	names, err := l.list(dirs, path)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		if found, err = l.Expand(dirs, git.Join(path, name), found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func OpenStack(paths []string) (Stack, error) {
	var stack Stack
	for _, path := range paths {
		r, err := OpenDir(filepath.Clean(path))
		if err != nil {
			stack.Close()
			return nil, err
		}
		stack = append(stack, r)
	}
	return stack, nil
}

func (l Stack) All() []int {
	set := make([]int, len(l))
	for i := range l {
		set[i] = i
	}
	return set
}

func (l Stack) Close() {
	for _, r := range l {
		_ = r.Dir.Close() // only an O_PATH descriptor: nothing can be lost
	}
}
