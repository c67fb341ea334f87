//go:build !linux

package frozen

import "github.com/litterbox-sandbox/litterbox/internal/fault"

var errSystem = fault.New(fault.Unsupported, "cannot freeze the files of a sandbox on this system")

// Snapshot needs overlayfs and openat2(2).
func (Box) Snapshot(string, bool) (Kept, error) { return Kept{}, errSystem }

// Revert likewise.
func (Box) Revert(string) error { return errSystem }

// Delete likewise.
func (Box) Delete(string) error { return errSystem }

// Fork likewise.
func (Box) Fork(string, Box) error { return errSystem }

// Settled gives the record as it stands: nothing can have been begun.
func (b Box) Settled() (*Record, error) { return Read(b.Dir) }
