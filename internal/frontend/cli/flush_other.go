//go:build !linux

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops unread input of a terminal, an incomplete line included.
func flushInput(tty *os.File) {
	const read = 1                                                   // FREAD
	_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCFLUSH, read) // a hang-up shows at the next read
}
