package probe

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// deep makes nested directories in a directory, none with any permission,
// deeper than a path can be.
func deep(args []string) (any, error) {
	if len(args) != 2 {
		return nil, errors.New("usage: deep DIRECTORY DEPTH")
	}
	depth, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, err
	}
	at, err := unix.Open(args[0], unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range depth {
		if err == nil {
			err = unix.Mkdirat(at, "deeper-down", 0o700)
		}
		next := -1
		if err == nil {
			next, err = unix.Openat(at, "deeper-down", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		}
		if err != nil {
			return nil, err
		}
		if err = unix.Fchmod(at, 0); err == nil {
			err = unix.Close(at)
		}
		at = next
	}
	if err == nil {
		err = unix.Fchmod(at, 0)
	}
	return nil, err
}
