package branch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// worktrees is where, below the top of a repository, the committed state of
// its sandboxes lies as plain files.
const worktrees = ".litterbox/worktrees"

// Worktree is the committed state of one sandbox as plain files in the user's
// checkout, for editors, linters and eyes. It is no linked worktree, which
// would lock the branch, and shares no inode with the cache.
type Worktree struct {
	Name  string // of the sandbox: its last path component
	State string // directory of ours for the index and a lock; made when missing
}

// WorktreePath is where the worktree of the sandbox name stands.
func (r *Repository) WorktreePath(name string) string {
	return filepath.Join(r.Top, worktrees, name)
}

// UpdateWorktree makes the worktree hold commit, exactly: files that somebody
// changed in it are put back. What is right already is not touched. With idle
// it takes only what the machine has left over.
func (r *Repository) UpdateWorktree(ctx context.Context, w Worktree, commit string, idle bool, p Progress) (string, error) {
	if !isOid(commit) {
		return "", fault.New(fault.Invalid, "cannot show %q as files: not an object id", commit)
	}
	job, err := r.prepareWorktree(ctx, w)
	if err != nil {
		return "", err
	}
	defer job.lock.Close()
	c := job.git("read-tree", "-u", "--reset")
	c.idle = idle
	if p != nil {
		c.args = append(c.args, "-v")
	}
	c.args = append(c.args, commit)
	if err := runWithProgress(ctx, c, p); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot write the files of %s to %q", w.Name, job.dir)
	}
	return job.dir, w.show(commit)
}

// worktreeJob is a worktree that is being written.
type worktreeJob struct {
	dir, view, index string
	lock             *os.File
}

// prepareWorktree makes what git works with; the caller closes the lock.
func (r *Repository) prepareWorktree(ctx context.Context, w Worktree) (*worktreeJob, error) {
	dir, err := r.makeWorktree(w.Name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.State, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot make %q", w.State)
	}
	j := &worktreeJob{dir: dir, view: filepath.Join(w.State, "view.git"), index: filepath.Join(w.State, "index")}
	if j.lock, err = lockFile(ctx, filepath.Join(w.State, "lock")); err != nil {
		return nil, err
	}
	v, err := r.conversion()
	if err == nil {
		err = r.makeView(j.view, v)
	}
	// The lock above is ours alone: one of git's is what a kill left.
	if removed := os.Remove(j.index + ".lock"); err == nil && removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		err = fault.Wrap(fault.Unavailable, removed, "cannot clear the index of %q", dir)
	}
	if err != nil {
		return nil, errors.Join(err, j.lock.Close())
	}
	return j, nil
}

func (j *worktreeJob) git(args ...string) call {
	return call{
		gitDir: j.view, dir: j.dir, private: true, files: []*os.File{j.lock}, idle: true,
		env:    []string{"GIT_WORK_TREE=" + j.dir, "GIT_INDEX_FILE=" + j.index, "GIT_PROGRESS_DELAY=0"},
		config: []string{"checkout.workers=0", "checkout.thresholdForParallelism=100"},
		args:   args,
	}
}

// RemoveWorktree deletes the worktree of a sandbox. One that is not there is
// no error.
func (r *Repository) RemoveWorktree(ctx context.Context, w Worktree) error {
	name := w.Name
	if r.Top == "" {
		return nil
	}
	// A git that lost its keeper to a kill may still be writing.
	if lock := filepath.Join(w.State, "lock"); w.State != "" {
		if _, err := os.Stat(lock); err == nil {
			held, err := lockFile(ctx, lock)
			if err != nil {
				return err
			}
			defer held.Close()
		}
	}
	root, err := os.OpenRoot(r.Top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		// A link on the way is not ours: what it leads to stays.
		ours := true
		for _, dir := range []string{".litterbox", worktrees} {
			info, err := root.Lstat(dir)
			ours = ours && err == nil && info.IsDir()
		}
		if ours {
			err = root.RemoveAll(filepath.Join(worktrees, name))
		}
		err = errors.Join(err, root.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot remove %q", r.WorktreePath(name))
	}
	return nil
}

// makeWorktree makes the directory and hides it from git. The checkout may hold
// anything at that path, links included: it is content that was merged.
func (r *Repository) makeWorktree(name string) (string, error) {
	dir := r.WorktreePath(name)
	cannot := func(err error) error { return fault.Wrap(fault.Unavailable, err, "cannot make %q", dir) }
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return "", cannot(err)
	}
	defer root.Close()
	at := ""
	for part := range strings.SplitSeq(worktrees+"/"+name, "/") {
		at = filepath.Join(at, part)
		if err := root.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", cannot(err)
		}
		info, err := root.Lstat(at)
		if err != nil {
			return "", cannot(err)
		}
		if !info.IsDir() {
			return "", fault.New(fault.Conflict, "cannot make %q: %q is no directory", dir, filepath.Join(r.Top, at)).
				WithHint("mv %s %s.moved", filepath.Join(r.Top, at), filepath.Join(r.Top, at))
		}
	}
	ignore, err := root.OpenFile(".litterbox/.gitignore", os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return dir, nil
	}
	if err == nil {
		_, err = ignore.WriteString("*\n")
		err = errors.Join(err, ignore.Close())
	}
	if err != nil {
		return "", cannot(err)
	}
	return dir, nil
}
