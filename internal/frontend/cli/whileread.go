package cli

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// readerEvery bounds how long one look for the reader waits.
const readerEvery = 250 * time.Millisecond

// whileRead gives a context that ends when nobody reads out any more. Otherwise
// whoever waits for something to print would only notice when there is
// something, which may be never. gone is then the error of such a write.
func whileRead(ctx context.Context, out io.Writer) (watched context.Context, gone func() error, stop func()) {
	file, ok := out.(*os.File)
	if !ok {
		return ctx, func() error { return nil }, func() {}
	}
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		// Nothing is asked for: only errors and hang-ups wake it (poll(2)).
		for fds := []unix.PollFd{{Fd: int32(file.Fd())}}; watched.Err() == nil; {
			n, err := unix.Poll(fds, int(readerEvery/time.Millisecond))
			if n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
				cancel(fault.Wrap("", syscall.EPIPE, "nobody reads the output any more"))
				return
			}
			if n > 0 || err != nil && err != unix.EINTR {
				return // it cannot be watched
			}
		}
	}()
	gone = func() error {
		if cause := context.Cause(watched); cause != nil && ctx.Err() == nil {
			return cause
		}
		return nil
	}
	return watched, gone, func() { cancel(nil) }
}
