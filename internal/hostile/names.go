package hostile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Names lists names in an open directory from where it stands, at most that
// many; all of them if most is not positive. At the end there are none. A
// directory that is removed while it is open has none either: getdents64(2)
// answers ENOENT for it. With an error come the names found before it.
func Names(dir *os.File, most int) ([]string, error) {
	names, err := dir.Readdirnames(most)
	return names, unlessGone(err)
}

// Entries is Names with the kinds of the entries.
func Entries(dir *os.File, most int) ([]fs.DirEntry, error) {
	entries, err := dir.ReadDir(most)
	return entries, unlessGone(err)
}

func unlessGone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}
