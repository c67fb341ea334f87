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

// joinStack replaces the layers that a sandbox stands on with one layer. Files
// no longer change, so the new layer has the same ones under new names. Nothing
// may run: a mount needs the layers that it was mounted with.
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

// longestRun finds the longest run of layers that one sandbox wrote: in another's
// layers, a fork sees the owner shifted, a whole layer at a time.
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
		if IsGolden(b.layer(stack[n])) { // others stand on it
			begin = n + 1
			continue
		}
		if n > begin && owner(stack[n]) != owner(stack[begin]) {
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

// joinTrees makes to show what the directories show together, topmost first,
// with all their marks about the layers below them.
func joinTrees(dirs []string, to string) (err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	var from []joined
	defer func() { err = errors.Join(err, leave(from)) }()
	for _, dir := range dirs {
		above, err := hostile.Directory(filepath.Dir(dir))
		if err != nil {
			return err
		}
		f, err := visit(above, filepath.Base(dir))
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

// joined is a directory of a layer while it is joined with others: st is its
// state as found, because it is open to its owner until done is called.
type joined struct {
	*os.File
	st   unix.Stat_t
	done func() error
}

// visit opens a directory of a layer, which its owner may have closed. Only
// mounts see its mode, and it is restored.
func visit(parent *os.File, name string) (j joined, err error) {
	if err := unix.Fstatat(int(parent.Fd()), name, &j.st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return j, err
	}
	j.File, j.done, err = enter(parent, name, &j.st, unix.O_RDONLY|unix.O_DIRECTORY, 0o500)
	return j, err
}

func leave(all []joined) error {
	var err error
	for _, j := range all {
		err = errors.Join(err, j.done())
	}
	return err
}

// joinInto fills the directory place with what those of from show. opaque says
// that something between them and the layers below hid those.
func joinInto(place *os.File, from []joined, opaque bool, depth int) error {
	if depth > deepest {
		return fault.New(fault.Unsupported, "cannot join directories of more than %d levels", deepest)
	}
	var names []string
	for _, f := range from {
		found, err := hostile.Names(f.File, -1)
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
	if err := c.attributes(from[0].File, to, true); err != nil {
		return err
	}
	if opaque {
		if err := unix.Fsetxattr(int(to.Fd()), "user.overlay.opaque", []byte("y"), 0); err != nil {
			return err
		}
	}
	return c.finish(int(to.Fd()), "", &from[0].st)
}

// joinEntry joins the entries of one name: the topmost file, or directories as
// far down as each shows the next.
func joinEntry(place *os.File, from []joined, name string, depth int) (err error) {
	var dirs []joined
	defer func() { err = errors.Join(err, leave(dirs)) }()
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
				return copyEntry(f.File, place, name)
			}
			return err
		}
		dir, err := visit(f.File, name)
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

// copyEntry copies a file that cannot have another name.
func copyEntry(from, place *os.File, name string) error {
	to, err := hostile.OpenAt(place, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer to.Close()
	c := copier{owner: Owner{-1, -1}, overlaid: true, linked: map[uint64]string{}, to: place}
	return c.entry(from, to, nil, name, name, 0)
}
