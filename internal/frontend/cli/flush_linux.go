package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops what was typed on a terminal and not read, a line that is
// not complete included.
func flushInput(tty *os.File) {
	_ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) // a terminal that hung up shows when it is read
}
