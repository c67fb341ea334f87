//go:build !linux

package frozen

import (
	"archive/tar"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

var errSystem = fault.New(fault.Unsupported, "cannot freeze the files of a sandbox on this system")

// Snapshot needs overlayfs and openat2(2).
func (Box) Snapshot(string, bool) (Kept, error) { return Kept{}, errSystem }

// Revert likewise.
func (Box) Revert(string) error { return errSystem }

// Delete likewise.
func (Box) Delete(string) error { return errSystem }

// Fork likewise.
func (Box) Fork(string, Box) error { return errSystem }

// Settled returns the record as it is: nothing can have been begun.
func (b Box) Settled() (*Record, error) { return Read(b.Dir) }

// Draft likewise.
func (Box) Draft() (*Draft, error) { return nil, errSystem }

// Draft is a layer that is being made.
type Draft struct{ Name, Dir string }

// Fill likewise.
func (*Draft) Fill(Box, []string) error { return errSystem }

// Unpack likewise.
func (*Draft) Unpack(*tar.Reader) error { return errSystem }

// Keep likewise.
func (*Draft) Keep() error { return errSystem }

// Pack likewise.
func (Box) Pack(string, *tar.Writer) error { return errSystem }

// Search likewise.
func Search(string, [][]byte) ([]Found, error) { return nil, errSystem }

// Rewrite likewise.
func (Box) Rewrite(string, string, func([]byte) []byte) error { return errSystem }

// Borrow is for Linux.
func (Box) Borrow(Box) error { return errSystem }

// TakeSystem is for Linux.
func (Box) TakeSystem(Box) error { return errSystem }
