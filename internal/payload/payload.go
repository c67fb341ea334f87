// Package payload is the programs carried inside the large one, compressed: the
// keeper for this machine, the guest for every kind of Linux place, and the outpost
// for every kind of Linux machine. Built by `make`, they are embedded; built by
// `go install`, they are not, and the large program serves as all of them.
//
// The same holds for the full program: heavy and rarely used parts would slow
// down every start of the program that users type, so it carries one that has
// it all (see package app).
package payload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// OpenKeeper returns the keeper's program, for this machine, ready to execute.
// It is unpacked once below dir. The caller closes it.
func OpenKeeper(dir string) (*os.File, error) {
	if packed, id := embeddedKeeper(); packed != nil {
		return open(dir, keeperName, id, packed)
	}
	file, err := handed(KeeperVariable, keeperName)
	if file != nil || err != nil {
		return file, err
	}
	return self()
}

// OpenGuest returns the guest's program for Linux places of an architecture,
// ready to execute. It is unpacked once below dir. The caller closes it. Without
// one the keeper's program serves as the guest's too.
func OpenGuest(dir, architecture string) (*os.File, error) {
	if packed, id := embedded(architecture); packed != nil {
		return open(dir, guestName, id, packed)
	}
	return handed(GuestVariable, guestName)
}

// handed opens the program that the parent of this one has unpacked; nil if
// there is none.
func handed(variable, name string) (*os.File, error) {
	path := os.Getenv(variable)
	if path == "" {
		return nil, nil
	}
	file, err := verified(path, strings.TrimPrefix(filepath.Base(path), name))
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open the program %q", path)
	}
	return file, nil
}

// The names of the unpacked programs; the hash of the content follows.
const (
	guestName  = "litterbox-guest-"
	keeperName = "litterbox-keeper-"
	fullName   = "litterbox-full-"
)

// open unpacks a program unless that was done before. One that has changed
// since it was unpacked is unpacked again.
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

// unpack writes the program in one step, so that no one runs half of it.
func unpack(path string, packed []byte) error {
	// A child that is forked meanwhile would hold the file open for writing until
	// it executes another program, and a file open for writing cannot be executed
	// (ETXTBSY).
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
