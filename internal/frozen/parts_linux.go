package frozen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// part is one of them.
type part struct{ name, layer string }

// parts lists the parts to freeze. above says that they are not all empty.
func (b Box) parts() (above bool, found []part, err error) {
	all := []part{{Upper, Upper}, {Home, Home}}
	if !b.Whole {
		names, err := os.ReadDir(filepath.Join(b.Dir, caches))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, nil, fault.Wrap(fault.Unavailable, err, "cannot list the package caches of a sandbox")
		}
		for _, entry := range names {
			all = append(all, part{filepath.Join(caches, entry.Name(), Upper), filepath.Join(caches, entry.Name())})
		}
	}
	for _, p := range all {
		switch used, err := hasEntries(filepath.Join(b.Dir, p.name)); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return false, nil, fault.Wrap(fault.Unavailable, err, "cannot look into %q of a sandbox", p.name)
		default:
			found, above = append(found, p), above || used
		}
	}
	return above, found, nil
}

// hasEntries reports whether a directory has entries; an unreadable one counts
// as having some.
func hasEntries(dir string) (bool, error) {
	top, err := hostile.Directory(dir)
	if err != nil {
		return false, err
	}
	defer top.Close()
	f, err := hostile.OpenAt(top, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return true, nil
	}
	defer f.Close()
	names, err := hostile.Names(f, 1)
	return err != nil || len(names) > 0, nil
}

// moveOut renames the written files into a layer, or what an earlier try has
// left of them.
func (b Box) moveOut(name string) error {
	_, parts, err := b.parts()
	if err != nil {
		return err
	}
	layer := b.layer(name)
	for _, p := range parts {
		from, to := filepath.Join(b.Dir, p.name), filepath.Join(layer, p.layer)
		if exists(to) {
			continue // from is the empty one made since
		}
		err := os.MkdirAll(filepath.Dir(to), 0o700)
		if err == nil {
			err = moveDirectory(from, to)
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot freeze %q of a sandbox", p.name)
		}
	}
	if err := os.MkdirAll(layer, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", layer)
	}
	return nil
}

// moveDirectory renames a directory whose owner may have made it read-only,
// while a move to a new parent needs write permission.
func moveDirectory(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(from, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTDIR
	}
	// Nothing runs that could replace it with a link.
	if err := unix.Chmod(from, st.Mode&0o7777|0o700); err != nil {
		return err
	}
	at := to
	if err = os.Rename(from, to); err != nil {
		at = from
	}
	return errors.Join(err, unix.Chmod(at, st.Mode&0o7777))
}

// empty makes empty directories above a stack, with the modes and times of the
// topmost in it: a merged directory shows those.
func (b Box) empty(stack []string) error {
	for _, p := range b.partsOf(stack) {
		at := filepath.Join(b.Dir, p.name)
		if exists(at) {
			continue
		}
		var like unix.Stat_t
		if err := unix.Lstat(p.layer, &like); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot look at %q", p.layer)
		}
		err := b.ownCaches(p.name)
		temp := at + ".new"
		if err == nil {
			err = hostile.Remove(temp)
		}
		if err == nil {
			err = os.Mkdir(temp, 0o700)
		}
		if err == nil && b.Owner.UID >= 0 {
			err = os.Lchown(temp, b.Owner.UID, b.Owner.GID)
		}
		if err == nil {
			err = unix.Chmod(temp, like.Mode&0o1777)
		}
		if err == nil {
			err = unix.UtimesNanoAt(unix.AT_FDCWD, temp, []unix.Timespec{like.Mtim, like.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
		}
		if err == nil {
			err = moveDirectory(temp, at)
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot make %q of a sandbox", p.name)
		}
	}
	return nil
}

// ownCaches makes the directories above that of a package cache, which are the
// host's.
func (b Box) ownCaches(name string) error {
	if !strings.HasPrefix(name, caches+"/") {
		return nil
	}
	return os.MkdirAll(filepath.Join(b.Dir, filepath.Dir(name)), 0o700)
}

// partsOf returns the parts of a stack, each with its topmost layer's path.
func (b Box) partsOf(stack []string) []part {
	var found []part
	seen := map[string]bool{}
	add := func(name, path string) {
		var st unix.Stat_t
		if !seen[name] && unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			seen[name] = true
			found = append(found, part{name, path})
		}
	}
	for _, name := range stack {
		layer := b.layer(name)
		add(Upper, filepath.Join(layer, Upper))
		add(Home, filepath.Join(layer, Home))
		names, _ := os.ReadDir(filepath.Join(layer, caches)) // most have none
		for _, entry := range names {
			add(filepath.Join(caches, entry.Name(), Upper), filepath.Join(layer, caches, entry.Name()))
		}
	}
	return found
}
