package layer

import (
	"errors"
	"os"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"golang.org/x/sys/unix"
)

// Written is everything that a sandbox has written above its base: its upper
// directory and the frozen ones below that, topmost first. Its methods show
// them merged, as overlayfs does, down to but without the base's layers.
type Written struct {
	roots []Root
	plain bool // a copy of everything: overlay attributes there mean nothing
}

// OpenWritten opens an upper directory and the frozen ones below it. plain is
// for a workspace that is a copy.
func OpenWritten(upper string, frozen []string, plain bool) (Written, error) {
	w := Written{plain: plain}
	for _, path := range append([]string{upper}, frozen...) {
		r, err := OpenDir(path)
		if err != nil {
			w.Close()
			return Written{}, err
		}
		w.roots = append(w.roots, r)
	}
	return w, nil
}

// Close closes the top directories.
func (w Written) Close() {
	for _, r := range w.roots {
		_ = r.Dir.Close() // only an O_PATH descriptor: nothing can be lost
	}
}

// Part is one of the directories that a merged directory is made of.
type Part struct {
	Root Root     // the top that it lies below
	Dir  *os.File // open for reading
}

// WrittenDir is a directory merged from what was written. One without parts
// does not exist.
type WrittenDir struct {
	Path  string
	Parts []Part // topmost first
	// Opaque is set if nothing of the base shows through: a part says so, or
	// something other than a directory lies below the parts.
	Opaque bool
	plain  bool
}

// Top opens the top directory.
func (w Written) Top() (*WrittenDir, error) {
	d := &WrittenDir{plain: w.plain}
	for _, r := range w.roots {
		if err := d.add(r, ""); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// add opens one more part, and notes whether it hides the layers below.
func (d *WrittenDir) add(r Root, path string) error {
	f, err := r.Open(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	d.Parts = append(d.Parts, Part{r, f})
	if d.plain {
		return nil
	}
	opaque, err := OverlayAttributes(f)
	d.Opaque = d.Opaque || opaque
	return err
}

// Close closes the parts.
func (d *WrittenDir) Close() {
	if d == nil {
		return
	}
	for _, p := range d.Parts {
		_ = p.Dir.Close() // opened for reading: nothing can be lost
	}
}

// Names lists the names in the parts, sorted, each once, whiteouts included.
func (d *WrittenDir) Names() ([]string, error) {
	var names []string
	for _, p := range d.Parts {
		found, err := hostile.Names(p.Dir, -1)
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot read the directory %q", d.Path)
		}
		names = append(names, found...)
	}
	slices.Sort(names) // the same order every time
	if len(d.Parts) > 1 {
		names = slices.Compact(names)
	}
	return names, nil
}

// Lookup finds the topmost file of a name, whiteouts included; unix.ENOENT if
// no part has it.
func (d *WrittenDir) Lookup(name string) (Part, unix.Stat_t, error) {
	for _, p := range d.Parts {
		st, err := StatAt(p.Dir, name)
		if !errors.Is(err, unix.ENOENT) {
			return p, st, err
		}
	}
	return Part{}, unix.Stat_t{}, unix.ENOENT
}

// Open opens the topmost file of a name.
func (d *WrittenDir) Open(name string, flags int) (*os.File, error) {
	p, _, err := d.Lookup(name)
	if err != nil {
		return nil, err
	}
	return p.Root.Open(join(d.Path, name), flags)
}

// Directory opens the directory of a name. If the topmost file is not a
// directory, or nothing is there, the result has no parts; Opaque says which.
func (d *WrittenDir) Directory(name string) (*WrittenDir, error) {
	below := &WrittenDir{Path: join(d.Path, name), plain: d.plain}
	for _, p := range d.Parts {
		st, err := StatAt(p.Dir, name)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			below.Opaque = true
			break
		}
		if err == nil {
			err = below.add(p.Root, below.Path)
		}
		if err != nil {
			below.Close()
			return nil, err
		}
		if below.Opaque {
			break
		}
	}
	return below, nil
}

// Walk opens the directory at a path of any depth; "" is the top. A missing
// one has no parts.
func (w Written) Walk(path string) (*WrittenDir, error) {
	d, err := w.Top()
	for err == nil && path != "" {
		name, rest, _ := cut(path)
		var below *WrittenDir
		below, err = d.Directory(name)
		d.Close()
		d, path = below, rest
	}
	return d, err
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func cut(path string) (first, rest string, more bool) {
	for i := range len(path) {
		if path[i] == '/' {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}
