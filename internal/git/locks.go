package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// git takes a lock by creating a file beside the locked one, and removes it when
// it is done. A killed git leaves it, and every later one fails. On the refs of
// a sandbox a lock is held for milliseconds: one that is seconds old is stale.
const (
	refLockAge    = 5 * time.Second
	packedLockAge = time.Minute // packed-refs is rewritten as a whole
)

// LockedError is a lock that git could not take.
type LockedError struct{ path string }

func (e *LockedError) Error() string { return "git cannot take the lock " + Printable(e.path) }

// lockNamed finds the lock in git's message that it cannot take it.
func lockNamed(stderr string) (*LockedError, bool) {
	found := regexp.MustCompile(`Unable to create '([^']+\.lock)': File exists`).FindStringSubmatch(stderr)
	if found == nil {
		return nil, false
	}
	return &LockedError{found[1]}, true
}

// AwaitLock waits until a lock on a ref is released, or so old that its holder
// must be dead; then it is removed.
func (r *Repository) AwaitLock(ctx context.Context, lock *LockedError) error {
	name, err := filepath.Rel(r.CommonDir, lock.path)
	most := refLockAge
	switch {
	case err == nil && strings.HasPrefix(name, "refs/"):
	case err == nil && name == "packed-refs.lock":
		most = packedLockAge
	default:
		return lock
	}
	for {
		info, err := os.Lstat(lock.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot look at a lock of git")
		}
		// A clock that was set back makes it look young; then we wait for it.
		if time.Since(info.ModTime()) > most {
			if err := os.Remove(lock.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.Wrap(fault.Unavailable, err, "cannot remove a lock that a dead git left").WithHint("rm %s", lock.path)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(fault.Canceled, ctx.Err(), "cannot wait for the lock %s", lock.path)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// dropLocks removes the locks that a killed git of ours has left on refs since
// it started.
func (r *Repository) dropLocks(started time.Time, refs ...string) {
	for _, name := range append(refs, "packed-refs") {
		path := filepath.Join(r.CommonDir, name+".lock")
		// A second less: some file systems count in whole seconds.
		if info, err := os.Lstat(path); err == nil && info.ModTime().After(started.Add(-time.Second)) {
			_ = os.Remove(path) // AwaitLock tries again
		}
	}
}
