package layer

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"golang.org/x/sys/unix"
)

// Cache is a directory of layers that sandboxes share: checked-out trees and
// packed histories, each made once. It belongs to one user and serves all of
// the user's repositories. Nothing in it ever changes after it is complete,
// and no sandbox can write to it.
//
// An entry is built in a directory beside its final place and renamed, under
// a file lock; kill -9 in the middle leaves a directory that the next builder
// of the same entry removes.
type Cache struct {
	Dir string
	// Had are the layers that a sandbox was started on before. Where others would
	// do as well, it gets the same again: the index inside knows their inodes.
	Had        []string
	HadModules sandbox.Modules // likewise; they stay if the host has lost them since
	Monitor    Monitor
}

// Monitor is the program that git inside asks which files changed
// (core.fsmonitor), so that it looks at no others.
type Monitor struct {
	Program func() string // returns its path inside, empty where nothing can tell; called only where it counts
	Files   int           // trees of fewer files do without: looking at them is quicker
}

// Progress receives the progress of long work: a label, how much is done and
// how much there is (0 if unknown). It may be nil.
type Progress func(label string, done, total int)

// entry returns the directory of an entry, building it if it is missing. build
// gets an empty directory and a lock file that the processes it starts must
// inherit, so that the lock outlives us as long as they do.
func (c Cache) entry(ctx context.Context, kind, key string,
	verify func(dir string) bool, build func(dir string, lock *os.File) error,
) (string, error) {
	parent := filepath.Join(c.Dir, kind)
	dir := filepath.Join(parent, key)
	if complete(dir, nil) {
		use(dir)
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot make the cache %q", parent)
	}
	lock, err := LockFile(ctx, dir+".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if complete(dir, verify) { // built while we waited
		return dir, nil
	}
	if err := sweep(parent, key); err != nil {
		return "", err
	}
	suffix := make([]byte, 8)
	_, _ = rand.Read(suffix) // never fails, crypto/rand
	building := dir + partial + hex.EncodeToString(suffix)
	if err := os.Mkdir(building, 0o755); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot make %q", building)
	}
	if err := finish(building, dir, build, lock); err != nil {
		return "", errors.Join(err, os.RemoveAll(building))
	}
	return dir, nil
}

// use notes that an entry was used just now: a cleanup of the cache spares it,
// though the sandbox that starts from it may not be recorded yet.
func use(dir string) {
	now := time.Now()
	_ = os.Chtimes(filepath.Join(dir, marker), now, now)
}

// Touch updates the time of an entry's last use.
func (c Cache) Touch(entry Entry) { use(entry.Dir) }

func finish(building, dir string, build func(string, *os.File) error, lock *os.File) error {
	if err := os.Chmod(building, 0o755); err != nil { // whatever the umask is
		return err
	}
	if err := build(building, lock); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(building, marker), bootID(), 0o644); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot finish %q", dir)
	}
	if err := os.Rename(building, dir); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot finish %q", dir)
	}
	return nil
}

// marker is the file that says that an entry is complete, and under which boot that
// was known. Files are not flushed when an entry is made, so after a power loss
// they may be shorter than they were: an entry of an earlier boot is verified once.
const marker = "complete"

// partial is part of the name of a directory in which an entry is being built.
const partial = ".partial-"

func complete(dir string, verify func(dir string) bool) bool {
	path := filepath.Join(dir, marker)
	boot, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	now := bootID()
	if string(boot) == string(now) {
		return true
	}
	if verify == nil || !verify(dir) {
		return false
	}
	return os.WriteFile(path, now, 0o644) == nil
}

// bootID changes with every boot of the machine (proc(5), random/boot_id).
func bootID() []byte {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return []byte("unknown")
	}
	return id
}

// sweep removes what interrupted or invalid builds of an entry left. It is
// called with the entry's lock held.
func sweep(parent, key string) error {
	names, err := os.ReadDir(parent)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read the cache %q", parent)
	}
	for _, n := range names {
		if n.Name() == key || strings.HasPrefix(n.Name(), key+partial) {
			if err := os.RemoveAll(filepath.Join(parent, n.Name())); err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot remove the incomplete cache entry %q", n.Name())
			}
		}
	}
	return nil
}

// LockFile takes an exclusive flock(2) and waits as long as ctx allows.
// Closing the file releases it, unless a child inherited it.
func LockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open the lock %q", path)
	}
	locked := make(chan error, 1)
	go func() {
		for {
			err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
			if err != unix.EINTR {
				locked <- err
				return
			}
		}
	}()
	select {
	case err = <-locked:
		if err == nil {
			return f, nil
		}
		return nil, errors.Join(fault.Wrap(fault.Unavailable, err, "cannot lock %q", path), f.Close())
	case <-ctx.Done():
		go func() { // the wait cannot be interrupted; give the lock back when it comes
			<-locked
			_ = f.Close()
		}()
		return nil, fault.Wrap(fault.Canceled, ctx.Err(), "cannot lock %q%s", path, lock.By(f, -1))
	}
}

// tryLockFile is LockFile without the wait: it returns nil if another holds the lock.
func tryLockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open the lock %q", path)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, nil
	}
	return f, nil
}
