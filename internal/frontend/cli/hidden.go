package cli

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// readHidden asks for a line and reads it without showing it. The terminal is
// silent before it asks, so that an immediate answer is not shown. However it ends,
// the terminal is restored.
func readHidden(ctx context.Context, tty *os.File, ask func() error) (value []byte, err error) {
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, term.Restore(fd, before)) }()
	if err := silence(fd); err != nil {
		return nil, err
	}
	if err := ask(); err != nil {
		return nil, err
	}
	type answer struct {
		value []byte
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		// It touches no mode of the terminal: an interrupt restores them while the
		// reading goes on.
		value, err := readLine(tty)
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done(): // Ctrl-C, while the line is still being read
		return nil, ctx.Err()
	}
}

// silence turns a terminal's echo off, and has it give whole lines and take Ctrl-C.
func silence(fd int) error {
	modes, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	modes.Lflag &^= unix.ECHO
	modes.Lflag |= unix.ICANON | unix.ISIG
	modes.Iflag |= unix.ICRNL
	return unix.IoctlSetTermios(fd, setTermios, modes)
}
