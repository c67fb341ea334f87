package landing

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// Worktree is the committed state of one sandbox as plain files, for editors and
// eyes. They are in the state directory: tools that walk a checkout would
// otherwise run an agent's configuration before a human has merged it (ADR 0007).
// The checkout has only a file that says where they are. It is not a linked
// worktree, which would lock the branch, and shares no inode with the cache.
type Worktree struct {
	Name  string // of the sandbox: the pointer's last path component
	State string // litterbox's own directory for the files, the index and a lock; made when missing
	Old   string // the same directory of a version that kept the files in the checkout
}

// Path is the directory with the files.
func (w Worktree) Path() string { return filepath.Join(w.State, "files") }

// UpdateWorktree makes the worktree hold commit, exactly: files changed in it are
// put back. Correct files are not touched. With idle it uses only spare resources
// of the machine.
func UpdateWorktree(ctx context.Context, r *git.Repository, w Worktree, commit string, idle bool, p layer.Progress) (string, error) {
	if !git.IsOid(commit) {
		return "", fault.New(fault.Invalid, "cannot show %q as files: not an object id", commit)
	}
	job, err := prepareWorktree(ctx, r, w)
	if err != nil {
		return "", err
	}
	defer job.lock.Close()
	c := job.git("read-tree", "-u", "--reset")
	c.Idle = idle
	if p != nil {
		c.Args = append(c.Args, "-v")
	}
	c.Args = append(c.Args, commit)
	if err := layer.RunWithProgress(ctx, c, p); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot write the files of %s to %q", w.Name, job.dir)
	}
	return job.dir, w.show(commit)
}

// worktreeJob is a worktree that is being written.
type worktreeJob struct {
	dir, view, index string
	lock             *os.File
}

// prepareWorktree makes the files that git works with; the caller closes the
// lock.
func prepareWorktree(ctx context.Context, r *git.Repository, w Worktree) (*worktreeJob, error) {
	dir := w.Path()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot make %q", dir)
	}
	var err error
	j := &worktreeJob{dir: dir, view: filepath.Join(w.State, "view.git"), index: filepath.Join(w.State, "index")}
	if j.lock, err = layer.LockFile(ctx, filepath.Join(w.State, "lock")); err != nil {
		return nil, err
	}
	v, err := layer.ConversionOf(r)
	if err == nil {
		err = layer.MakeView(r, j.view, v)
	}
	// Only litterbox takes the lock above: a lock of git's is left from a kill.
	if removed := os.Remove(j.index + ".lock"); err == nil && removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		err = fault.Wrap(fault.Unavailable, removed, "cannot clear the index of %q", dir)
	}
	if err != nil {
		return nil, errors.Join(err, j.lock.Close())
	}
	point(r, w)
	return j, nil
}

func (j *worktreeJob) git(args ...string) git.Command {
	return git.Command{
		GitDir: j.view, Dir: j.dir, Private: true, Files: []*os.File{j.lock}, Idle: true,
		Env:    []string{"GIT_WORK_TREE=" + j.dir, "GIT_INDEX_FILE=" + j.index, "GIT_PROGRESS_DELAY=0"},
		Config: []string{"checkout.workers=0", "checkout.thresholdForParallelism=100"},
		Args:   args,
	}
}
