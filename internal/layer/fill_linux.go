package layer

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// copyWorkers is how many files are copied at once: copies wait more for the
// file system than for a processor.
const copyWorkers = 4

// Make fills the upper directory. It must not be called once the sandbox has
// run: existing files would be in its way.
func (c Copy) Make(ctx context.Context, o git.Owner, p Progress) error {
	stack, err := OpenStack(c.Layers)
	if err != nil {
		return err
	}
	defer stack.Close()
	upper, err := OpenDir(c.Upper)
	if err != nil {
		return err
	}
	defer upper.Dir.Close()
	index, err := os.ReadFile(c.template())
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot read the index of the layers")
	}
	if err := errors.Join(os.Chmod(c.Upper, 0o755), o.Give(c.Upper)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot hand over %q", c.Upper)
	}
	w := &filler{layers: stack, upper: upper, owner: o, copied: map[string]unix.Stat_t{}}
	if len(index) >= git.IndexHeader {
		w.total = int(binary.BigEndian.Uint32(index[8:]))
	}
	w.progress = p
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(copyWorkers + 1)
	group.Go(func() error { return w.directory(groupCtx, group, stack.All(), "") })
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return fault.Wrap(fault.Canceled, ctx.Err(), "cannot copy the files")
		}
		return fault.Wrap(fault.Unavailable, err, "cannot copy the files to %q", c.Upper)
	}
	if err := c.remember(index, w.copied, o); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot remember what was copied to %q", c.Upper)
	}
	return nil
}

// Forget replaces a lost memory with one that knows the files of the layers
// but nothing of the copies: all are read at the next commit.
func (c Copy) Forget() error {
	index, err := os.ReadFile(c.template())
	if err == nil {
		err = c.write(index, func([]byte, string) {})
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", c.Base)
	}
	return nil
}

// template returns the index that matches the files of the layers.
func (c Copy) template() string {
	return filepath.Join(c.Layers[len(c.Layers)-1], ".git", "index")
}

// remember writes the index inside, which knows the copies, and our own of the
// same files, which a sandbox cannot change.
func (c Copy) remember(index []byte, copied map[string]unix.Stat_t, o git.Owner) error {
	// In a file written this moment, a change in the same clock tick would not show.
	settled := time.Now().Add(-git.RacyWindow).UnixNano()
	body := index[:len(index)-git.NewHash(c.Format).Size()]
	_, err := git.IndexEntries(index, c.Format, func(entry []byte, name string) error {
		st, ok := copied[name]
		if !ok {
			return nil // a submodule's directory
		}
		binary.BigEndian.PutUint32(entry[git.EntryCtime:], uint32(st.Ctim.Sec))
		binary.BigEndian.PutUint32(entry[git.EntryCtime+4:], uint32(st.Ctim.Nsec))
		binary.BigEndian.PutUint32(entry[git.EntryMtime:], uint32(st.Mtim.Sec))
		binary.BigEndian.PutUint32(entry[git.EntryMtime+4:], uint32(st.Mtim.Nsec))
		binary.BigEndian.PutUint32(entry[git.EntryIno:], uint32(st.Ino))
		return nil
	})
	if err != nil {
		return err
	}
	if err := git.WriteIndex(filepath.Join(c.Upper, ".git", "index"), c.Format, body, o); err != nil {
		return err
	}
	return c.write(index, func(entry []byte, name string) {
		if st, ok := copied[name]; ok && st.Ctim.Nano() >= settled {
			clear(entry[git.EntryIno : git.EntryIno+4])
		}
	})
}

// write writes our own index, after calling each for every entry.
func (c Copy) write(index []byte, each func(entry []byte, name string)) error {
	_, err := git.IndexEntries(index, c.Format, func(entry []byte, name string) error {
		each(entry, name)
		return nil
	})
	if err != nil {
		return err
	}
	return git.WriteIndex(c.Base, c.Format, index[:len(index)-git.NewHash(c.Format).Size()], git.Owner{})
}

// filler is one Make under way.
type filler struct {
	layers   Stack
	upper    Root
	owner    git.Owner
	progress Progress
	total    int
	noClone  atomic.Bool // the file system shares no blocks

	mu     sync.Mutex
	copied map[string]unix.Stat_t
}

// directory copies everything below path, which exists already, from the
// merged layers of set. Files of the upper directory stay.
func (w *filler) directory(ctx context.Context, group *errgroup.Group, set []int, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := w.layers.list(set, path)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		below := git.Join(path, name)
		layer, st, ok, err := w.layers.top(set, below)
		if err != nil || !ok {
			if err != nil {
				return err
			}
			continue
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			_, dirs, err := w.layers.Lookup(set, below)
			if err == nil {
				err = w.mkdir(below, &st)
			}
			if err == nil {
				err = w.directory(ctx, group, dirs, below)
			}
			if err != nil {
				return err
			}
			continue
		}
		one := func() error { return w.file(w.layers[layer], below, &st) }
		if !group.TryGo(one) { // the others are busy: so is this one
			if err := one(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *filler) mkdir(path string, st *unix.Stat_t) error {
	full := filepath.Join(w.upper.Dir.Name(), path)
	err := os.Mkdir(full, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil // the sandbox's own part of .git
	}
	if err == nil {
		err = unix.Chmod(full, st.Mode&0o7777)
	}
	if err == nil {
		err = w.owner.Give(full)
	}
	return err
}

func (w *filler) file(from Root, path string, st *unix.Stat_t) error {
	to := filepath.Join(w.upper.Dir.Name(), path)
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = copyLink(from, path, to)
	} else {
		err = w.content(from, path, to, st)
	}
	if errors.Is(err, os.ErrExist) {
		return nil // the upper directory's own
	}
	if err == nil {
		err = w.owner.Give(to)
	}
	if err == nil {
		err = unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{st.Mtim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
	}
	var made unix.Stat_t
	if err == nil {
		err = unix.Lstat(to, &made)
	}
	if err != nil {
		return err
	}
	if path == ".git" || strings.HasPrefix(path, ".git/") {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copied[path] = made
	if w.progress != nil && len(w.copied)%256 == 0 {
		w.progress("Copying files", len(w.copied), w.total)
	}
	return nil
}

func copyLink(from Root, path, to string) error {
	target := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(int(from.Dir.Fd()), path, target)
	if err != nil {
		return err
	}
	return os.Symlink(string(target[:n]), to)
}

// content copies a regular file, sharing its blocks where possible.
func (w *filler) content(from Root, path, to string, st *unix.Stat_t) error {
	in, err := from.Open(path, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	shared := false
	if !w.noClone.Load() && st.Size > 0 {
		shared = unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil
		w.noClone.Store(!shared)
	}
	if !shared {
		_, err = io.Copy(out, in)
	}
	if err == nil {
		err = out.Chmod(os.FileMode(st.Mode & 0o777))
	}
	return errors.Join(err, out.Close())
}
