//go:build !linux

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops what was typed on a terminal and not read, a line that is
// not complete included.
func flushInput(tty *os.File) {
	const read = 1                                                   // FREAD
	_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCFLUSH, read) // a terminal that hung up shows when it is read
}
