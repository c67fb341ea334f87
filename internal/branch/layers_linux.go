package branch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// root is a directory below which paths are opened as package hostile does:
// without ever following a link, leaving it or waiting, whatever happens to it
// meanwhile.
type root struct{ f *os.File }

func openRoot(path string) (root, error) {
	f, err := hostile.Directory(path)
	if err != nil {
		return root{}, fault.Wrap(fault.Unavailable, err, "cannot open %q", path)
	}
	return root{f}, nil
}

func (r root) open(path string, flags int) (*os.File, error) { return hostile.OpenAt(r.f, path, flags) }

func statAt(dir *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func isWhiteout(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// layerStack looks paths up in the read-only layers. A set of layers is a
// slice of their numbers, topmost first: those in which the parent is visible.
type layerStack []root

// lookup finds what the layers of set hold at path, whose parent is a
// directory in each of them; for a directory, also the layers it is merged from.
func (l layerStack) lookup(set []int, path string) (layerKind, []int, error) {
	var dirs []int
	for n, i := range set {
		st, err := statAt(l[i].f, path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return layerNone, nil, fault.Wrap(fault.Internal, err, "cannot look up %q in a layer", path)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if len(dirs) == 0 && !isWhiteout(&st) {
				return layerFile, nil, nil
			}
			break
		}
		dirs = append(dirs, i)
		if n == len(set)-1 {
			break
		}
		d, err := l[i].open(path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return layerNone, nil, fault.Wrap(fault.Internal, err, "cannot look up %q in a layer", path)
		}
		opaque, err := overlayAttributes(d)
		_ = d.Close()
		if err != nil {
			return layerNone, nil, err
		}
		if opaque {
			break
		}
	}
	if len(dirs) == 0 {
		return layerNone, nil, nil
	}
	names, err := l.list(dirs, path)
	if err != nil {
		return layerNone, nil, err
	}
	if len(names) == 0 {
		return layerGitlink, dirs, nil
	}
	return layerDir, dirs, nil
}

// top finds the topmost thing at path, whose parent is a directory in each
// layer of set; ok is false when there is none, or when it is hidden.
func (l layerStack) top(set []int, path string) (layer int, st unix.Stat_t, ok bool, err error) {
	for _, i := range set {
		st, err := statAt(l[i].f, path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return 0, st, false, fault.Wrap(fault.Internal, err, "cannot look up %q in a layer", path)
		}
		return i, st, !isWhiteout(&st), nil
	}
	return 0, st, false, nil
}

// list gives the names in a directory that is merged from set, whiteouts of
// upper layers not yet taken into account.
func (l layerStack) list(set []int, path string) ([]string, error) {
	var names []string
	for _, i := range set {
		d, err := l[i].open(path, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot read %q in a layer", path)
		}
		found, err := d.Readdirnames(-1)
		_ = d.Close()
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "cannot read %q in a layer", path)
		}
		names = append(names, found...)
	}
	return names, nil
}

// read gives a regular file of the layers, nil when there is none.
func (l layerStack) read(set []int, path string) ([]byte, error) {
	for _, i := range set {
		st, err := statAt(l[i].f, path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return nil, err
		}
		f, err := l[i].open(path, unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readLimited(f, maxRules)
	}
	return nil, nil
}

// size is that of the regular file at a path of any depth. Layers have no
// opaque directories: what hides a path is a whiteout, or something of another
// kind, at the path or above it.
func (l layerStack) size(path string) (int64, error) {
	for i := range l {
		f, err := l[i].open(path, unix.O_PATH)
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

// overlayAttributes reads what overlayfs noted on a file or directory. It
// refuses everything that changes what the merged view shows and that we do
// not follow: redirect, metacopy, xattr whiteouts (Documentation/filesystems/
// overlayfs.rst, Linux 6.17), and anything unknown.
func overlayAttributes(f *os.File) (opaque bool, err error) {
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
			continue // bookkeeping that shows in no file
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

// expand lists the tracked paths of the layers at or below path.
func (s *scan) expand(path string) ([]string, error) {
	stack, err := s.openBeneath()
	if err != nil {
		return nil, err
	}
	defer stack.close()
	if s.copied != nil {
		return stack.expand(nil, path, nil)
	}
	set := stack.all()
	for i, part := 0, strings.Split(path, "/"); i < len(part)-1; i++ {
		kind, dirs, err := stack.lookup(set, strings.Join(part[:i+1], "/"))
		if err != nil || kind != layerDir {
			return nil, err
		}
		set = dirs
	}
	return stack.expand(set, path, nil)
}

func (l layerStack) expand(set []int, path string, found []string) ([]string, error) {
	kind, dirs, err := l.lookup(set, path)
	if err != nil || kind == layerNone {
		return found, err
	}
	if kind != layerDir {
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
		if found, err = l.expand(dirs, join(path, name), found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func openLayers(paths []string) (layerStack, error) {
	var stack layerStack
	for _, path := range paths {
		r, err := openRoot(filepath.Clean(path))
		if err != nil {
			stack.close()
			return nil, err
		}
		stack = append(stack, r)
	}
	return stack, nil
}

func (l layerStack) all() []int {
	set := make([]int, len(l))
	for i := range l {
		set[i] = i
	}
	return set
}

func (l layerStack) close() {
	for _, r := range l {
		_ = r.f.Close() // only an O_PATH descriptor: nothing can be lost
	}
}
