package landing

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// Litterbox once kept committed files below the checkout, where the human's tools
// ran files that they found. The remains are removed file by file: exactly those
// that match the index of that time. Files that a human has changed or added
// stay.

// HasOldWorktree reports, at the price of one system call, whether an earlier
// version has left files of the sandbox in the checkout.
func HasOldWorktree(r *git.Repository, w Worktree) bool {
	if r.Top == "" || w.Old == "" {
		return false
	}
	_, err := os.Lstat(w.Old)
	return err == nil
}

// MoveWorktree removes the files that an earlier version has put into the
// checkout; the next look at the worktree writes them to where they belong. It
// names the files that stay because a human has changed them. It can go on after
// a kill at any step: the index of that time goes last.
func MoveWorktree(ctx context.Context, r *git.Repository, w Worktree) (note string, err error) {
	if !HasOldWorktree(r, w) {
		return "", nil
	}
	cannot := func(err error) error {
		return fault.Wrap(fault.Unavailable, err, "cannot remove the files of sandbox %q from %q", w.Name, filepath.Join(r.Top, pointers, w.Name))
	}
	lock, err := layer.LockFile(ctx, filepath.Join(w.Old, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // another command was faster
	}
	if err != nil {
		return "", err
	}
	defer lock.Close()
	left, err := takeAway(ctx, r, w, lock)
	if err != nil {
		return "", cannot(err)
	}
	if err := os.RemoveAll(w.Old); err != nil {
		return "", cannot(err)
	}
	if len(left) == 0 {
		return "", nil
	}
	shown := left[:min(3, len(left))]
	return "committed files are no longer kept in the checkout; these stay in " + filepath.Join(pointers, w.Name) +
		" because they were changed there: " + git.Printable(strings.Join(shown, ", ")) + more(len(left)-len(shown)), nil
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return " and others"
}

// takeAway removes unchanged files from the checkout, and lists those that stay.
func takeAway(ctx context.Context, r *git.Repository, w Worktree, lock *os.File) (left []string, err error) {
	parent, err := openPointers(r, false)
	if err != nil {
		return nil, nil // none of litterbox's files are there
	}
	defer parent.Close()
	info, err := parent.Lstat(w.Name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	root, err := parent.OpenRoot(w.Name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	unchanged, err := unchangedOld(ctx, r, w, lock)
	if err != nil {
		return nil, err
	}
	for _, path := range unchanged {
		if err := root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	var dirs []string
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			left = append(left, path) // it cannot be read, so it is not litterbox's
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
		case entry.IsDir():
			dirs = append(dirs, path)
		default:
			left = append(left, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, dir := range slices.Backward(dirs) {
		if dir != "." {
			_ = root.Remove(dir) // unless it holds something
		}
	}
	if len(left) == 0 {
		err = parent.Remove(w.Name)
	}
	return left, err
}

// unchangedOld lists the files in the checkout that are exactly as litterbox
// wrote them.
func unchangedOld(ctx context.Context, r *git.Repository, w Worktree, lock *os.File) ([]string, error) {
	if !fileStands(filepath.Join(w.Old, "index")) {
		return nil, nil // it was never filled
	}
	job := &worktreeJob{dir: filepath.Join(r.Top, pointers, w.Name), view: filepath.Join(w.Old, "view.git"), index: filepath.Join(w.Old, "index"), lock: lock}
	v, err := layer.ConversionOf(r)
	if err == nil {
		err = layer.MakeView(r, job.view, v)
	}
	if removed := os.Remove(job.index + ".lock"); err == nil && removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		err = removed
	}
	if err != nil {
		return nil, err
	}
	// Its output and exit status say which files are changed.
	_, _ = job.git("update-index", "-q", "--refresh").Output(ctx)
	changed, err := job.git("diff-files", "--name-only", "-z").Output(ctx)
	if err != nil {
		return nil, err
	}
	all, err := job.git("ls-files", "-z").Output(ctx)
	if err != nil {
		return nil, err
	}
	differs := map[string]bool{}
	for _, path := range strings.Split(string(changed), "\x00") {
		differs[path] = true
	}
	var same []string
	for _, path := range strings.Split(string(all), "\x00") {
		if path != "" && !differs[path] {
			same = append(same, filepath.FromSlash(path))
		}
	}
	return same, nil
}
