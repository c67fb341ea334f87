package process

import (
	"errors"
	"os"
	"path/filepath"
)

// longest is how long a directory may be so that a socket's name below it fits into
// the 104 bytes that sun_path has outside of Linux (unix(4)).
const longest = 60

// throughLink is ShortPath where there is no /proc: a long path becomes a symbolic
// link in a directory that only this user can enter.
func throughLink(dir string, use func(short string) error) error {
	if len(dir) <= longest {
		return use(dir)
	}
	temp, err := os.MkdirTemp("/tmp", ".lb-")
	if err != nil {
		return err
	}
	short := filepath.Join(temp, "d")
	if err = os.Symlink(dir, short); err == nil {
		err = use(short)
	}
	return errors.Join(err, os.RemoveAll(temp))
}
