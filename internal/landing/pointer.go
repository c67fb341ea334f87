package landing

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"golang.org/x/sys/unix"
)

// pointers is the directory, below the top of a repository, with a file for each
// sandbox that says where its committed files are. No compiler, test runner,
// linter or search enters a file with a path in it; some follow a link.
const pointers = ".litterbox/worktrees"

// maxPointer bounds how much of a possible pointer is read.
const maxPointer = 8 << 10

// point writes the pointer of a worktree. It is a convenience: where something
// else is in its place, or nothing may be written, there is none. The checkout
// may hold anything at that path, links included: it is content that was merged.
func point(r *git.Repository, w Worktree) {
	root, err := openPointers(r, true)
	if err != nil {
		return
	}
	defer root.Close()
	text := w.Path() + "\n"
	if readPointer(root, w.Name) == text {
		return
	}
	file, err := root.OpenFile(w.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = root.Remove(w.Name) // half a path leads elsewhere
	}
}

// unpoint removes the pointer of a worktree, if it is one.
func unpoint(r *git.Repository, w Worktree) error {
	root, err := openPointers(r, false)
	if err != nil {
		return nil // there is none
	}
	defer root.Close()
	if readPointer(root, w.Name) != w.Path()+"\n" {
		return nil
	}
	if err := root.Remove(w.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot remove %q", filepath.Join(r.Top, pointers, w.Name))
	}
	return nil
}

func readPointer(root *os.Root, name string) string {
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxPointer {
		return ""
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(text)
}

// openPointers opens the directory with the pointers, through no link.
func openPointers(r *git.Repository, make bool) (*os.Root, error) {
	if r.Top == "" {
		return nil, fs.ErrNotExist
	}
	top, err := os.OpenRoot(r.Top)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	at := ""
	for part := range strings.SplitSeq(pointers, "/") {
		at = filepath.Join(at, part)
		if make {
			if err := top.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
		info, err := top.Lstat(at)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, fs.ErrNotExist
		}
		if make && at == ".litterbox" {
			if err := ignoreAll(top); err != nil {
				return nil, err
			}
		}
	}
	return top.OpenRoot(pointers)
}

// ignoreAll hides .litterbox from git, and from the tools that ask git.
func ignoreAll(top *os.Root) error {
	file, err := top.OpenFile(".litterbox/.gitignore", os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = file.WriteString("*\n")
		err = errors.Join(err, file.Close())
	}
	return err
}

// RemoveWorktree removes a sandbox's files from the checkout, and waits for a git
// that still writes its worktree; the caller removes that directory. It names the
// files that stay because a human has changed them.
func RemoveWorktree(ctx context.Context, r *git.Repository, w Worktree) (note string, err error) {
	// A git that lost its keeper to a kill may still be writing.
	if lock := filepath.Join(w.State, "lock"); fileStands(lock) {
		held, err := layer.LockFile(ctx, lock)
		if err != nil {
			return "", err
		}
		defer held.Close()
	}
	note, err = MoveWorktree(ctx, r, w)
	return note, errors.Join(err, unpoint(r, w))
}

func fileStands(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
