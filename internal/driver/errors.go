package driver

import (
	"errors"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The errors that a driver may return, besides context errors. Foreign errors
// (errno, libvirt's, docker's) are mapped to one of these at the driver's edge
// and joined as text, never as a type.
var (
	ErrUnsupported      = fault.New(fault.Unsupported, "this driver does not support the operation")
	ErrLeaseUnavailable = fault.New(fault.Unavailable, "no sandbox can be started")
	ErrMachineLost      = fault.New(fault.Unavailable, "the sandbox's processes are gone") // known to be
	ErrPauseTimeout     = fault.New(fault.Timeout, "the sandbox did not pause in time")
	ErrDiskFull         = fault.New(fault.Unavailable, "the disk is full")
	ErrMountFailed      = fault.New(fault.Unavailable, "a file system could not be mounted")
	ErrUnreachable      = fault.New(fault.Unavailable, "the sandbox does not answer")
	ErrHeld             = fault.New(fault.Conflict, "something inside holds files of the sandbox")
	ErrNoSnapshot       = fault.New(fault.NotFound, "there is no such snapshot")
)

// Joined keeps one of the errors above as the type and a foreign one as text.
func Joined(sentinel *fault.Error, foreign error) error {
	return fault.Wrap("", sentinel, "%v", foreign)
}

// Seal turns an error of the system into one of the errors above, with its text:
// [ErrDiskFull] if it is one, else [ErrLeaseUnavailable].
func Seal(foreign error, text string) error {
	sentinel := ErrLeaseUnavailable
	if errors.Is(foreign, syscall.ENOSPC) || errors.Is(foreign, syscall.EDQUOT) {
		sentinel = ErrDiskFull
	}
	return fault.Wrap("", Joined(sentinel, foreign), "%s", text)
}
