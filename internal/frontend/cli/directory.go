package cli

import (
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// directory is the value of -C. As in git(1), each further relative -C is relative
// to the one before.
type directory string

func (d *directory) String() string { return string(*d) }
func (d *directory) Type() string   { return "DIR" }

func (d *directory) Set(value string) error {
	if *d == "" || filepath.IsAbs(value) {
		*d = directory(value)
		return nil
	}
	*d = directory(filepath.Join(string(*d), value))
	return nil
}

func (d *directory) absolute() (string, error) {
	dir, err := filepath.Abs(string(*d))
	if err != nil {
		return "", fault.Wrap(fault.NotFound, err, "cannot find the current directory")
	}
	return dir, nil
}

// hostPath is a path on the host as the user meant it, seen from dir. A slash
// at its end survives, because it says "into this directory".
func hostPath(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	joined := filepath.Join(dir, path)
	if strings.HasSuffix(path, "/") {
		joined += "/"
	}
	return joined
}
