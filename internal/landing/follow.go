package landing

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// What a worktree may hold without being asked for: files, and bytes in them.
const (
	followedFiles = 2000
	followedBytes = 256 << 20
)

// In the state of a worktree: the commit that it shows, and why it is behind
// the branch, for the user.
const (
	shownFile  = "commit"
	behindFile = "behind"
)

// FollowWorktree brings the worktree to commit unasked: never over changes made
// in it, and not at all when it is large; those wait for [UpdateWorktree]. A
// worktree that stays behind for a reason that the user should know says so in
// its state ([Worktree.Behind]).
func FollowWorktree(ctx context.Context, r *git.Repository, w Worktree, commit string) error {
	if !git.IsOid(commit) {
		return fault.New(fault.Invalid, "cannot show %q as files: not an object id", commit)
	}
	if w.shown() == commit {
		return nil
	}
	if small, err := small(ctx, r, commit); err != nil || !small {
		return err
	}
	job, err := prepareWorktree(ctx, r, w)
	if err != nil {
		return w.behind(err)
	}
	defer job.lock.Close()
	args := []string{"read-tree", "-m", "-u"}
	switch _, err := os.Lstat(job.index); {
	case err == nil && w.shown() == "":
		return w.behind(fault.New(fault.Conflict, "writing them was interrupted"))
	case err == nil:
		// So that a file that was only touched does not count as changed. Its
		// output and exit status say which files are.
		_, _ = job.git("update-index", "-q", "--refresh").Output(ctx)
		args = append(args, w.shown())
	case !errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(fault.Unavailable, err, "cannot look at the index of %q", job.dir)
	default:
		if names, err := os.ReadDir(job.dir); err != nil || len(names) > 0 {
			return w.behind(errors.Join(err, fault.New(fault.Conflict, "it holds files that litterbox did not write")))
		}
	}
	if _, err := job.git(append(args, commit)...).Output(ctx); err != nil {
		if ctx.Err() != nil {
			return w.behind(fault.New(fault.Canceled, "filling it was interrupted"))
		}
		var refused *git.Failure
		if errors.As(err, &refused) && strings.Contains(refused.Stderr, "not uptodate") || strings.Contains(err.Error(), "would be overwritten") {
			err = fault.New(fault.Conflict, "files in it were changed")
		}
		return w.behind(err)
	}
	return w.show(commit)
}

// small reports whether a commit's files are few enough.
func small(ctx context.Context, r *git.Repository, commit string) (bool, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	count := &sizeCount{stop: stop}
	c := r.Command("ls-tree", "-r", "-l", "-z", commit)
	c.Stdout, c.Idle = count, true
	_, err := c.Output(ctx)
	if count.tooMany() {
		return false, nil
	}
	return err == nil, err
}

// sizeCount adds up what ls-tree -l -z prints.
type sizeCount struct {
	files, bytes int64
	rest         []byte
	stop         func()
}

func (s *sizeCount) tooMany() bool { return s.files > followedFiles || s.bytes > followedBytes }

func (s *sizeCount) Write(b []byte) (int, error) {
	s.rest = append(s.rest, b...)
	for {
		line, rest, ok := bytes.Cut(s.rest, []byte{0})
		if !ok {
			break
		}
		s.rest = rest
		s.files++
		if f := strings.Fields(string(line)); len(f) > 3 { // "-" of a submodule is not a number
			size, _ := strconv.ParseInt(f[3], 10, 64)
			s.bytes += size
		}
	}
	if s.tooMany() {
		s.stop()
	}
	return len(b), nil
}

// shown is the commit that the worktree holds; empty when that is not known.
func (w Worktree) shown() string {
	content, err := os.ReadFile(filepath.Join(w.State, shownFile))
	if oid := strings.TrimSpace(string(content)); err == nil && git.IsOid(oid) {
		return oid
	}
	return ""
}

func (w Worktree) show(commit string) error {
	err := git.ReplaceFile(filepath.Join(w.State, shownFile), []byte(commit+"\n"))
	if removed := os.Remove(filepath.Join(w.State, behindFile)); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot note what the worktree of %q shows", w.Name)
	}
	return nil
}

// behind leaves a message for the user.
func (w Worktree) behind(why error) error {
	text := "its committed files in " + w.Path() + " are not up to date: " + why.Error() + " (litterbox path " + w.Name + " repairs them)"
	if err := git.ReplaceFile(filepath.Join(w.State, behindFile), []byte(text)); err != nil {
		return errors.Join(why, err)
	}
	return nil
}

// Behind says, once, why the worktree does not follow; mostly "".
func (w Worktree) Behind() string {
	path := filepath.Join(w.State, behindFile)
	text, err := os.ReadFile(path)
	if err != nil || os.Remove(path) != nil {
		return ""
	}
	return git.Printable(string(text))
}
