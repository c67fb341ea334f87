package image

import (
	"context"
	"errors"
	"hash"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	held "github.com/litterbox-sandbox/litterbox/internal/lock"
)

func (l Limits) bytes() int64 {
	if l.Bytes > 0 {
		return l.Bytes
	}
	return defaultBytes
}

func (l Limits) entries() int {
	if l.Entries > 0 {
		return l.Entries
	}
	return defaultEntries
}

func (l Limits) reserve() int64 {
	if l.Reserve > 0 {
		return l.Reserve
	}
	return defaultReserve
}

// counter reports bytes read and remembers how the reading ended.
type counter struct {
	r      io.Reader
	ctx    context.Context
	report func(int64)
	err    error
}

func (c *counter) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, fault.Wrap(fault.Canceled, err, "cannot go on")
	}
	n, err := c.r.Read(p)
	c.report(int64(n))
	if err != nil {
		c.err = err
	}
	return n, err
}

// hashing hashes the bytes read, and refuses more than left bytes: a layer of a
// few megabytes can decompress to any size.
type hashing struct {
	r    io.Reader
	hash hash.Hash
	left int64
}

func (h *hashing) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	if h.left -= int64(n); h.left < 0 {
		return 0, fault.New(fault.Denied, "a layer is larger than an image's layer may be")
	}
	h.hash.Write(p[:n])
	return n, err
}

// lock takes an exclusive flock(2), and waits as long as ctx lasts.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open the lock %q", path)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // which releases the lock
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fault.Wrap(fault.Unavailable, err, "cannot lock %q", path), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fault.Wrap(fault.Canceled, ctx.Err(), "cannot wait for another unpacking of a layer%s", held.By(f, -1)), f.Close())
		case <-time.After(lockInterval):
		}
	}
}

// lockInterval is how often a lock is tried while another process holds it to
// unpack, which takes seconds.
const lockInterval = 50 * time.Millisecond
