package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops unread input of a terminal, an incomplete line included.
func flushInput(tty *os.File) {
	_ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) // a hang-up shows at the next read
}
