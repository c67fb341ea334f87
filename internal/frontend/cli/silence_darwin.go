package cli

import "golang.org/x/sys/unix"

// How termios(3) is read and written here.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
