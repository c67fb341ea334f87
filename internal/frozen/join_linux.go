package frozen

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// joinStack puts one layer in the place of those that a sandbox stands on. Files
// never change any more, so the new layer has the same ones under further names.
// Nothing may run: what is mounted needs the layers that it was mounted with.
func (b Box) joinStack(r *Record) error {
	from, to := b.longestRun(r.Stack)
	if to-from < 2 {
		return nil
	}
	name := newName()
	stack := slices.Concat(r.Stack[:from], []string{name}, r.Stack[to:])
	r.Pending = &Pending{Layer: name, Copied: true, Stack: stack}
	if err := r.write(b.Dir); err != nil {
		return err
	}
	if err := b.join(name, r.Stack[from:to]); err != nil {
		return errors.Join(err, b.abandon(r))
	}
	return b.finish(r)
}

// longestRun finds the most layers one below the other that one sandbox wrote: of
// another one's, a fork sees the owner shifted, a whole layer at a time.
func (b Box) longestRun(stack []string) (from, to int) {
	owner := func(name string) uint32 {
		var st unix.Stat_t
		for _, part := range b.partsOf([]string{name}) {
			if unix.Lstat(part.layer, &st) == nil {
				return st.Uid
			}
		}
		return st.Uid
	}
	begin := 0
	for n := range stack {
		if n > 0 && owner(stack[n]) != owner(stack[begin]) {
			begin = n
		}
		if n+1-begin > to-from {
			from, to = begin, n+1
		}
	}
	return from, to
}

func (b Box) join(name string, stack []string) error {
	layers, to := LayersOf(b.Dir, stack), b.layer(name)+partial
	parts := map[string][]string{Upper: layers.Upper, Home: layers.Home}
	for cache, dirs := range layers.Caches {
		parts[filepath.Join(caches, cache)] = dirs
	}
	for part, dirs := range parts {
		if len(dirs) == 0 {
			continue
		}
		if err := joinTrees(dirs, filepath.Join(to, part)); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot join the frozen layers of a sandbox")
		}
	}
	if err := os.Rename(to, b.layer(name)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot finish %q", b.layer(name))
	}
	return nil
}

// joinTrees makes to what the directories show together, topmost first, with
// everything that they say about what lies below them.
func joinTrees(dirs []string, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	var from []*os.File
	defer func() {
		for _, f := range from {
			_ = f.Close() // opened for reading
		}
	}()
	for _, dir := range dirs {
		above, err := hostile.Directory(filepath.Dir(dir))
		if err != nil {
			return err
		}
		f, err := openClosed(above, filepath.Base(dir))
		if err = errors.Join(err, above.Close()); err != nil {
			return err
		}
		from = append(from, f)
	}
	made, err := hostile.Directory(to)
	if err != nil {
		return err
	}
	defer made.Close()
	return joinInto(made, from, false, 0)
}

// openClosed opens a directory of a layer for reading, which its owner may have
// closed. Nobody sees its mode but by what is mounted, and it gets it back.
func openClosed(parent *os.File, name string) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(parent.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	f, err := hostile.OpenAt(parent, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if !errors.Is(err, unix.EACCES) {
		return f, err
	}
	place, err := hostile.OpenAt(parent, name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	at := filepath.Join("/proc/self/fd", itoa(int(place.Fd())))
	if err := unix.Chmod(at, st.Mode&0o7777|0o500); err != nil {
		return nil, err
	}
	f, err = hostile.OpenAt(parent, name, unix.O_RDONLY|unix.O_DIRECTORY)
	return f, errors.Join(err, unix.Chmod(at, st.Mode&0o7777))
}

// joinInto fills the directory to with what those of from show. opaque says that
// something below them was hidden by what stands between them.
func joinInto(place *os.File, from []*os.File, opaque bool, depth int) error {
	if depth > deepest {
		return fault.New(fault.Unsupported, "cannot join directories of more than %d levels", deepest)
	}
	var names []string
	for _, f := range from {
		found, err := f.Readdirnames(-1)
		if err != nil {
			return err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := joinEntry(place, from, name, depth); err != nil {
			return err
		}
	}
	to, err := hostile.OpenAt(place, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer to.Close()
	c := copier{owner: Owner{-1, -1}, overlaid: true}
	if err := c.attributes(from[0], to, true); err != nil {
		return err
	}
	if opaque {
		if err := unix.Fsetxattr(int(to.Fd()), "user.overlay.opaque", []byte("y"), 0); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(from[0].Fd()), &st); err != nil {
		return err
	}
	return c.finish(int(to.Fd()), "", &st)
}

// joinEntry joins what has one name: the topmost thing, or directories as far
// down as each shows the next.
func joinEntry(place *os.File, from []*os.File, name string, depth int) error {
	var dirs []*os.File
	defer func() {
		for _, f := range dirs {
			_ = f.Close() // opened for reading
		}
	}()
	opaque := false
	for _, f := range from {
		var st unix.Stat_t
		err := unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if len(dirs) > 0 {
				opaque = true
				break
			}
			err := unix.Linkat(int(f.Fd()), name, int(place.Fd()), name, 0)
			if errors.Is(err, unix.EMLINK) || errors.Is(err, unix.EPERM) {
				return copyEntry(f, place, name)
			}
			return err
		}
		dir, err := openClosed(f, name)
		if err != nil {
			return err
		}
		dirs = append(dirs, dir)
		value := make([]byte, 8)
		if n, err := unix.Fgetxattr(int(dir.Fd()), "user.overlay.opaque", value); err == nil && string(value[:n]) == "y" {
			opaque = true
			break
		}
	}
	if err := unix.Mkdirat(int(place.Fd()), name, 0o700); err != nil {
		return err
	}
	below, err := hostile.OpenAt(place, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer below.Close()
	return joinInto(below, dirs, opaque, depth+1)
}

// copyEntry copies what can have no further name.
func copyEntry(from, place *os.File, name string) error {
	to, err := hostile.OpenAt(place, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer to.Close()
	c := copier{owner: Owner{-1, -1}, overlaid: true, linked: map[uint64]string{}, to: place}
	return c.entry(from, to, name, name, 0)
}
