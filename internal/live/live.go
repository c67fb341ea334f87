// Package live is what a live environment has of a human's checkout: which of
// its files stay read-only inside (Protect), and the worktree state of git, HEAD
// and index, which the environment has as a copy of its own (Checkout).
//
// The environment can write the checkout and its own copy. So both are read by
// package hostile, no git runs on either, and everything that comes back into the
// checkout's git directory is checked first: the name of a branch, and an index
// whose paths git would take from no one else.
//
// Start reading at [Protect] and [Checkout.Sync].
package live

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// largest bounds how much of one file is read: an index of some million paths.
const largest = 256 << 20

// readFile reads a regular file of a directory, without following a link there
// and without waiting for a pipe.
func readFile(dir *os.Root, name string) ([]byte, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is not a regular file")}
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err == nil && len(data) > largest {
		err = &fs.PathError{Op: "read", Path: name, Err: errors.New("it is too large")}
	}
	return data, errors.Join(err, f.Close())
}
