package rpc

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/libvirt"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// sealed turns the error of a request into one of package driver's. The codes are
// libvirt's (include/libvirt/virterror.h); when a code means several things, its
// text decides.
func sealed(q libvirt.Request, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return wrap(late(q.Op), q, err)
	case errors.Is(err, fs.ErrPermission):
		return denied(q, err)
	case gone(err):
		return wrap(driver.ErrUnreachable, q, err).WithHint("%s", startHint(q.URI))
	}
	var said golibvirt.Error
	if !errors.As(err, &said) {
		return wrap(driver.ErrLeaseUnavailable, q, err)
	}
	if text := strings.ToLower(said.Message); strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, syscall.EDQUOT.Error()) {
		return wrap(driver.ErrDiskFull, q, err)
	}
	switch golibvirt.ErrorNumber(said.Code) {
	case golibvirt.ErrNoDomain, golibvirt.ErrInvalidDomain:
		return wrap(driver.ErrMachineLost, q, err)
	case golibvirt.ErrNoDomainSnapshot:
		return wrap(driver.ErrNoSnapshot, q, err)
	case golibvirt.ErrOperationTimeout, golibvirt.ErrAgentUnresponsive:
		return wrap(late(q.Op), q, err)
	case golibvirt.ErrNoSupport, golibvirt.ErrConfigUnsupported, golibvirt.ErrOperationUnsupported, golibvirt.ErrArgumentUnsupported,
		golibvirt.ErrXMLError, golibvirt.ErrXMLDetail, golibvirt.ErrXMLInvalidSchema:
		// libvirt names the line or the element of the XML.
		return wrap(driver.ErrUnsupported, q, err)
	case golibvirt.ErrAuthFailed, golibvirt.ErrAuthCancelled, golibvirt.ErrAuthUnavailable, golibvirt.ErrAccessDenied, golibvirt.ErrOperationDenied:
		return denied(q, err)
	case golibvirt.ErrOperationInvalid:
		if strings.Contains(said.Message, "not running") {
			return wrap(driver.ErrMachineLost, q, err)
		}
	case golibvirt.ErrRPC, golibvirt.ErrNoConnect, golibvirt.ErrInvalidConn:
		return wrap(driver.ErrUnreachable, q, err)
	}
	return wrap(driver.ErrLeaseUnavailable, q, err)
}

// late is the error for a request that took too long.
func late(op libvirt.Op) *fault.Error {
	if op == libvirt.OpSuspend {
		return driver.ErrPauseTimeout
	}
	return driver.ErrUnreachable
}

// wrap keeps a foreign error as text only.
func wrap(sentinel *fault.Error, q libvirt.Request, err error) *fault.Error {
	return fault.Wrap("", driver.Joined(sentinel, err), "cannot %s", verb(q))
}

func denied(q libvirt.Request, err error) error {
	hint := "export LIBVIRT_DEFAULT_URI=qemu:///session"
	if strings.Contains(q.URI, "/system") {
		hint = "sudo usermod -aG libvirt $USER"
	}
	return fault.New(fault.Denied, "cannot %s: libvirt at %s does not permit it: %v", verb(q), q.URI, err).WithHint("%s", hint)
}

// verb describes the request.
func verb(q libvirt.Request) string {
	switch q.Op {
	case libvirt.OpVersion:
		return "ask libvirt"
	case libvirt.OpState:
		return "ask libvirt about the domain " + q.UUID
	case libvirt.OpSuspend:
		return "pause the domain " + q.UUID
	case libvirt.OpMeasure:
		return "measure the domain " + q.UUID
	case libvirt.OpSnapshot:
		return "take a snapshot of the domain " + q.UUID
	case libvirt.OpRedefine:
		return "define a snapshot of the domain " + q.UUID
	case libvirt.OpRevert, libvirt.OpRevertOff:
		return "revert the domain " + q.UUID
	case libvirt.OpForget:
		return "forget a snapshot of the domain " + q.UUID
	}
	return string(q.Op) + " the domain " + q.UUID
}

// gone reports whether an error is the end of a connection, or that there was none.
func gone(err error) bool {
	var network net.Error
	return errors.Is(err, golibvirt.ErrInterrupted) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.EINVAL) || // the library's error on a connection that has ended
		errors.As(err, &network)
}

// startHint starts a libvirt that does not answer.
func startHint(uri string) string {
	if strings.Contains(uri, "/system") {
		return "sudo systemctl start libvirtd"
	}
	return "virsh -c qemu:///session version"
}

// passes reports whether an error may be gone on the next attempt.
func passes(err error) bool {
	var said golibvirt.Error
	if errors.As(err, &said) {
		switch golibvirt.ErrorNumber(said.Code) {
		case golibvirt.ErrResourceBusy, golibvirt.ErrRPC:
			return true
		case golibvirt.ErrOperationTimeout: // another job holds the domain
			return strings.Contains(said.Message, "cannot acquire state change lock")
		}
		return false
	}
	return gone(err) && !errors.Is(err, syscall.ENOENT) // a libvirtd that is restarted leaves its socket
}
