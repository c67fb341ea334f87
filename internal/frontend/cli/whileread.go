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

// whileRead runs a command that follows something, with a context that ends when
// the reader of out is gone, and returns that as an error. Otherwise a command that
// waits for something to print would notice only when it prints, which may be
// never.
func whileRead(ctx context.Context, out io.Writer, follow func(context.Context) error) error {
	file, ok := out.(*os.File)
	if !ok {
		return follow(ctx)
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go awaitHangUp(watched, file, cancel)
	err := follow(watched)
	if cause := context.Cause(watched); cause != nil && ctx.Err() == nil {
		return cause
	}
	return err
}

// awaitHangUp cancels when the other end of a pipe, socket or terminal is gone.
func awaitHangUp(ctx context.Context, file *os.File, cancel context.CancelCauseFunc) {
	// No event is requested: only errors and hang-ups wake it (poll(2)).
	for fds := []unix.PollFd{{Fd: int32(file.Fd())}}; ctx.Err() == nil; {
		n, err := unix.Poll(fds, int(readerEvery/time.Millisecond))
		if n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
			cancel(fault.Wrap("", syscall.EPIPE, "the reader of the output closed it"))
			return
		}
		if n > 0 || err != nil && err != unix.EINTR {
			return // it cannot be watched
		}
	}
}
