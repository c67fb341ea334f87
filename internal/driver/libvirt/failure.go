package libvirt

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// stuck is the error of a domain that stands still since it could not write.
func (m Machine) stuck(h handle, answer Answer) error {
	if answer.State == Paused && answer.Reason == "ioerror" {
		return fault.Wrap("", driver.ErrDiskFull, "cannot use the domain %s: it stands still since it could not write to its disk, and goes on when there is room for that", h.UUID).
			WithHint("df -h %s", h.Dir)
	}
	return nil
}

// writePatience is how soon a domain that still cannot write stands still again: it
// repeats the write at once.
const writePatience = 200 * time.Millisecond

// goOn lets a domain go on that stands still. One that could not write may have room
// again.
func (m Machine) goOn(ctx context.Context, h handle, was Answer) error {
	if _, err := m.ask(ctx, h, OpResume); err != nil || m.stuck(h, was) == nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(writePatience):
	}
	now, err := m.ask(ctx, h, OpState)
	if err != nil {
		return err
	}
	return m.stuck(h, now)
}

// wentOn reports whether the domain stood still since it could not write, and goes on
// now.
func (m Machine) wentOn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	h, err := readHandle(m.StateDir)
	if err != nil {
		return false
	}
	answer, err := m.ask(ctx, h, OpState)
	return err == nil && m.stuck(h, answer) != nil && m.goOn(ctx, h, answer) == nil
}

// stillPaused fails with driver.ErrMachineLost when a domain that was paused has ended
// since, as with its host. A libvirt that does not answer says nothing about it.
func (m Machine) stillPaused(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	h, err := readHandle(m.StateDir)
	if err != nil {
		return err
	}
	answer, err := m.ask(ctx, h, OpState)
	if err != nil || answer.State == Runs || answer.State == Paused {
		return nil //nolint:nilerr // it is paused as far as is known
	}
	if err := m.unmark(h); err != nil {
		return err
	}
	return driver.ErrMachineLost
}

// explained names a damaged disk, where a domain could not be started.
func (m Machine) explained(h handle, err error) error {
	why := damage(h.disk())
	if why == "" || !errors.Is(err, driver.ErrLeaseUnavailable) {
		return err
	}
	return fault.Wrap("", driver.Joined(driver.ErrLeaseUnavailable, err), "cannot start the domain %s: its disk is damaged: %s; what was committed is in the repository", h.UUID, why).
		WithHint("qemu-img check -r all %s", h.disk())
}

// damage says what is wrong with the header of a qcow2 file; "" if nothing is, or if it
// cannot be read. (The format: docs/interop/qcow2.txt of QEMU.)
func damage(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var head [80]byte
	_, err = io.ReadFull(f, head[:])
	const corrupt = 1 << 1 // of the incompatible features
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it is cut off"
	case err != nil:
		return ""
	case string(head[:4]) != "QFI\xfb":
		return "it does not begin as a disk of QEMU's"
	case binary.BigEndian.Uint64(head[72:])&corrupt != 0:
		return "QEMU has found errors in it"
	}
	return ""
}
