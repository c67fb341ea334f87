package hostile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// shallow is how deep a tree is entered. Deeper directories are moved to the
// top first, so a tree of any depth needs only that many descriptors for each of
// the helpers.
const shallow = 16

// helpers is how many names are removed beside the one that the caller removes.
// The removal of a file waits for the disk where each file's blocks are discarded
// at once, as ext4 does that is mounted with discard and has no journal: several
// wait together.
const helpers = 7

// Remove removes path and everything below it, whatever the sandbox did to it:
// directories without permissions are opened up, flags that forbid changes are
// cleared where the caller may, and neither depth, names nor their number
// matter. No link is followed. A missing path is not an error. A file that cannot
// be removed is an error, but the rest is still removed.
func Remove(path string) error {
	parent, err := Directory(filepath.Dir(path))
	if isNotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	name := filepath.Base(path)
	switch err := unlink(parent, name); {
	case err == nil || isNotThere(err):
		return nil
	case !errors.Is(err, unix.EISDIR):
		return &os.PathError{Op: "unlink", Path: path, Err: err}
	}
	top, err := Enter(parent, name)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer top.Close()
	r := remover{top: top, free: make(chan struct{}, helpers)}
	if err := r.empty(top, 0); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR); err != nil && !isNotThere(err) {
		return &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}

// remover removes one tree.
type remover struct {
	top   *os.File
	moved atomic.Int64  // directories moved to the top
	free  chan struct{} // holds one value for each helper at work
}

// maxPasses bounds how often a directory that never gets empty is read: a
// remaining process may go on filling it.
const maxPasses = 10000

// empty removes the entries of a directory. Names that appear while it is read
// are found by reading it again.
func (r *remover) empty(dir *os.File, depth int) error {
	for range maxPasses {
		if _, err := dir.Seek(0, 0); err != nil {
			return err
		}
		pass := pass{}
		for {
			names, err := Names(dir, batch)
			r.removeAll(dir, names, depth, &pass)
			if err != nil || len(names) == 0 {
				break
			}
		}
		if !pass.removed {
			return pass.failed // nil: it is empty
		}
	}
	return errors.New("new files appear all the time")
}

// pass is what came of going through a directory once.
type pass struct {
	mu      sync.Mutex
	removed bool
	failed  error // one speaks for all
}

func (p *pass) add(name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.removed = true
	} else if p.failed == nil {
		p.failed = fmt.Errorf("cannot remove %q: %w", name, err)
	}
}

// removeAll removes names of a directory, several at once while helpers are free.
// It returns when all of them were tried.
func (r *remover) removeAll(dir *os.File, names []string, depth int, p *pass) {
	var helping sync.WaitGroup
	defer helping.Wait()
	for _, name := range names {
		select {
		case r.free <- struct{}{}:
			helping.Go(func() {
				p.add(name, r.remove(dir, name, depth))
				<-r.free
			})
		default:
			p.add(name, r.remove(dir, name, depth))
		}
	}
}

// remove removes one name of a directory, or moves a deep directory to the top.
func (r *remover) remove(dir *os.File, name string, depth int) error {
	err := unlink(dir, name)
	if err == nil || isNotThere(err) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) {
		return err
	}
	below, err := Enter(dir, name)
	if isNotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer below.Close()
	if depth == shallow {
		return r.lift(dir, name)
	}
	if err := r.empty(below, depth+1); err != nil {
		return err
	}
	err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	if isNotThere(err) {
		return nil
	}
	return err
}

// lift moves a directory to the top under a name that is free there.
func (r *remover) lift(dir *os.File, name string) error {
	for range maxPasses {
		free := fmt.Sprintf("deep-%d", r.moved.Add(1))
		err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), free, unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return unix.EEXIST
}

// unlink removes anything but a directory; EISDIR says that it is one.
func unlink(dir *os.File, name string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	// Immutable or append-only, or in a directory that is.
	if file, openErr := OpenAt(dir, name, unix.O_RDONLY); openErr == nil {
		loosen(file)
		_ = file.Close() // only read
	}
	return unix.Unlinkat(int(dir.Fd()), name, 0)
}

// Enter opens a directory to remove its entries, and gives its owner every
// right to do so.
func Enter(dir *os.File, name string) (*os.File, error) {
	place, err := OpenAt(dir, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer place.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(place.Fd()), &st); err != nil {
		return nil, err
	}
	const all = unix.S_IRWXU
	if st.Mode&all != all {
		// A descriptor that was opened with O_PATH is changed by its path in
		// /proc; fchmodat2(2) only came with Linux 6.6.
		if err := unix.Chmod(procPath(place), all); err != nil && !errors.Is(err, unix.EPERM) {
			return nil, err
		}
	}
	opened, err := OpenAt(place, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		loosen(opened)
	}
	return opened, err
}

// Flags that FS_IOC_SETFLAGS may have set, linux/fs.h; only CAP_LINUX_IMMUTABLE
// clears them.
const (
	flagImmutable = 0x10
	flagAppend    = 0x20
)

// loosen clears flags that forbid changing or removing a file. If there are
// none, or it may not, the removal says what is wrong.
func loosen(file *os.File) {
	flags, err := unix.IoctlGetInt(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&(flagImmutable|flagAppend) != 0 {
		_ = unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags&^(flagImmutable|flagAppend))
	}
}
