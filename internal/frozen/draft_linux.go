package frozen

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// Draft is the layer of a golden that is being made. A golden is a directory
// with a record that keeps one layer, which sandboxes are forked from; that
// layer holds only directories, regular files and symbolic links.
type Draft struct {
	Name string // of the layer
	Dir  string // the directory where it is made
	box  Box
}

// Draft begins the layer of the golden whose directory is that of the box, which
// exists. The record comes first, so that the layer does not look unused.
func (b Box) Draft() (*Draft, error) {
	kept := Kept{ID: newName(), CreatedAt: time.Now().UTC().Truncate(time.Millisecond)}
	kept.Stack = []string{kept.ID}
	d := &Draft{Name: kept.ID, Dir: b.layer(kept.ID) + partial, box: b}
	r := &Record{Version: version, Stack: kept.Stack, Kept: []Kept{kept}}
	if err := r.write(b.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(d.Dir, Below), 0o755); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot make a layer")
	}
	return d, nil
}

// Keep completes the layer.
func (d *Draft) Keep() error {
	if err := os.Rename(d.Dir, d.box.layer(d.Name)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot finish the layer %q", d.Name)
	}
	return nil
}

// Fill copies what a sandbox, which must not run, holds on top of its base: HOME,
// its package caches, and the given paths of its workspace. The layers below that
// show through count too, and only new files are copied.
func (d *Draft) Fill(from Box, paths []string) error {
	r, err := from.Settled()
	if err != nil {
		return err
	}
	own := filepath.Join(d.Dir, ".own")
	if err := d.copyWritten(from, own, paths, len(r.Stack) > 0); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot copy what a sandbox holds")
	}
	stand := LayersOf(from.Dir, r.Stack)
	parts := map[string][]string{Below: stand.Below, Home: stand.Home}
	for name, dirs := range stand.Caches {
		parts[filepath.Join(caches, name)] = dirs
	}
	names, _ := os.ReadDir(filepath.Join(own, caches)) // there may be none
	for _, entry := range names {
		if part := filepath.Join(caches, entry.Name()); parts[part] == nil {
			parts[part] = []string{}
		}
	}
	for part, dirs := range parts {
		if mine := filepath.Join(own, part); exists(mine) {
			dirs = append([]string{mine}, dirs...)
		}
		if len(dirs) == 0 {
			continue
		}
		to := filepath.Join(d.Dir, part)
		if err := hostile.Remove(to); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot make way for %q", part)
		}
		if err := joinTrees(dirs, to); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot join %q of a golden", part)
		}
	}
	if err := hostile.Remove(own); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot clear away a copy")
	}
	return d.scrub()
}

// copyWritten copies the files that a sandbox has written itself.
func (d *Draft) copyWritten(from Box, own string, paths []string, stacked bool) error {
	_, parts, err := from.parts()
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.name == Upper {
			continue
		}
		if err := copyTree(filepath.Join(from.Dir, p.name), filepath.Join(own, p.layer), d.box.Owner, p.name != Home || stacked); err != nil {
			return err
		}
	}
	return d.copyPaths(filepath.Join(from.Dir, Upper), filepath.Join(own, Below), paths)
}

// copyPaths copies some paths below one directory to another, with the
// directories above them.
func (d *Draft) copyPaths(from, to string, paths []string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	top, err := hostile.Directory(from)
	if err != nil {
		return err
	}
	defer top.Close()
	made, err := hostile.Directory(to)
	if err != nil {
		return err
	}
	defer made.Close()
	c := &copier{owner: d.box.Owner, overlaid: true, linked: map[uint64]string{}, to: made}
	above := []string{""}
	for _, path := range paths {
		var parent string
		if at := strings.LastIndexByte(path, '/'); at >= 0 {
			parent = path[:at]
		}
		if above, err = c.above(made, parent, above); err != nil {
			return err
		}
		if err := c.path(top, parent, path); err != nil {
			return err
		}
	}
	slices.Reverse(above) // the times of a directory change when files are put into it
	for _, path := range above {
		if err := c.like(top, path); err != nil {
			return err
		}
	}
	return nil
}

// above makes the directories down to path that are not in known yet.
func (c *copier) above(made *os.File, path string, known []string) ([]string, error) {
	for at := 0; at < len(path); {
		next := strings.IndexByte(path[at:], '/')
		if next < 0 {
			next = len(path) - at
		}
		dir := path[:at+next]
		at += next + 1
		if slices.Contains(known[max(0, len(known)-recent):], dir) {
			continue
		}
		parent, err := hostile.OpenAt(made, filepath.Dir(dir), unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return nil, err
		}
		err = unix.Mkdirat(int(parent.Fd()), filepath.Base(dir), 0o700)
		if err = errors.Join(err, parent.Close()); errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return nil, err
		}
		known = append(known, dir)
	}
	return known, nil
}

// recent is how many directories are searched before the disk is asked: paths
// come sorted.
const recent = 64

// path copies one file or directory from below top.
func (c *copier) path(top *os.File, parent, path string) error {
	from, err := hostile.OpenAt(top, parent, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := hostile.OpenAt(c.to, parent, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer to.Close()
	return c.entry(from, to, nil, filepath.Base(path), path, strings.Count(path, "/"))
}

// like gives a new directory the attributes of the original.
func (c *copier) like(top *os.File, path string) error {
	from, err := hostile.OpenAt(top, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := hostile.OpenAt(c.to, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer to.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &st); err != nil {
		return err
	}
	return c.finish(int(to.Fd()), "", &st)
}

// scrub removes from the layer what only an overlay understands, which nothing
// below needs anymore, and what a golden has no use for.
func (d *Draft) scrub() error {
	top, err := hostile.Directory(d.Dir)
	if err != nil {
		return err
	}
	defer top.Close()
	dir, err := hostile.OpenAt(top, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		err = errors.Join(scrub(dir, "", 0), dir.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot clean a layer")
	}
	return nil
}

// scrub leaves directories with packages as they are: their marks about the
// system directories below are part of them.
func scrub(dir *os.File, at string, depth int) error {
	if depth > deepest {
		return fault.New(fault.Unsupported, "cannot clean directories of more than %d levels", deepest)
	}
	names, err := hostile.Names(dir, -1)
	if err != nil {
		return err
	}
	if err := unix.Fremovexattr(int(dir.Fd()), "user.overlay.opaque"); err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) && !errors.Is(err, unix.EACCES) {
		return err
	}
	var before unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &before); err != nil {
		return err
	}
	removed := false
	for _, name := range names {
		if at == caches && IsSystem(name) {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG, unix.S_IFLNK:
		case unix.S_IFDIR:
			below, done, err := enter(dir, name, &st, unix.O_RDONLY|unix.O_DIRECTORY, 0o700)
			if err != nil {
				return err
			}
			if err := errors.Join(scrub(below, filepath.Join(at, name), depth+1), done()); err != nil {
				return err
			}
		default:
			removed = true
			if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil {
				return err
			}
		}
	}
	if !removed {
		return nil
	}
	times := []unix.Timespec{before.Atim, before.Mtim}
	return unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join("/proc/self/fd", itoa(int(dir.Fd()))), times, 0)
}
