// Package payload is the small program (keeper and guest) carried inside the
// large one, compressed, for every kind of Linux guest. Built by `make`, it is
// embedded; built by `go install`, it is not, and the large program serves as
// the small one.
//
// The same holds for the full program: what is heavy and rarely used would make
// every start of the program that is typed slower, so it carries one that has
// it all (see package app).
package payload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Open returns the small program for this machine, ready to execute. It is
// unpacked once below dir. The caller closes it.
func Open(dir string) (*os.File, error) {
	packed, id := embedded(runtime.GOARCH)
	if packed != nil {
		return open(dir, guestName, id, packed)
	}
	if path := os.Getenv(GuestVariable); path != "" {
		file, err := verified(path, strings.TrimPrefix(filepath.Base(path), guestName))
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot open the guest program")
		}
		return file, nil
	}
	return self()
}

// What the unpacked programs are called; the hash of the content follows.
const (
	guestName = "litterbox-guest-"
	fullName  = "litterbox-full-"
)

// open unpacks a program unless that was done before. One that is not what it
// was when it was unpacked is unpacked anew.
func open(dir, name, hash string, packed []byte) (*os.File, error) {
	path := filepath.Join(dir, "bin", name+hash)
	file, err := verified(path, hash)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, errChanged) {
		if err := unpack(path, packed); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot unpack the program %s", name+hash)
		}
		file, err = verified(path, hash)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open the program %s", name+hash)
	}
	return file, nil
}

// unpack writes the program in one step, so that nobody runs half of it.
func unpack(path string, packed []byte) error {
	// A child that is forked meanwhile would hold the file open for writing
	// until it executes something else, and what is open for writing cannot be
	// executed (ETXTBSY).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".unpack-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(temp, reader)
	if err == nil {
		err = temp.Chmod(0o755) // the shifted user of root's sandboxes executes it too
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
