package door

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
)

// Config is the user's own configuration of ssh: ~/.ssh/config.
type Config string

// mark begins the text put at the head of the file, or madeMark if there was
// no file before.
const (
	mark     = "# Added by litterbox ssh-config --install; --uninstall takes it out.\n"
	madeMark = "# Made by litterbox ssh-config --install; --uninstall takes it out.\n"
)

// Install includes the block, before everything else: an Include after a Host
// belongs to that host. It reports whether anything changed.
func (c Config) Install(files Files) (bool, error) {
	if err := ownership.ForRoot(filepath.Dir(string(c))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	content, mode, err := c.read()
	if err != nil || c.included(content, files) != "" {
		return false, err
	}
	first := mark
	if mode == 0 {
		first, mode = madeMark, 0o600
		if err := os.MkdirAll(filepath.Dir(string(c)), 0o700); err != nil {
			return false, unwritable(err)
		}
	}
	return true, c.write(append([]byte(first+includeLine(files)), content...), mode)
}

// Uninstall removes what Install put in, and leaves every other byte. It
// reports whether there was anything to remove.
func (c Config) Uninstall(files Files) (bool, error) {
	content, mode, err := c.read()
	if err != nil {
		return false, err
	}
	added := c.included(content, files)
	if added == "" {
		return false, nil
	}
	rest := bytes.Replace(content, []byte(added), nil, 1)
	if len(rest) == 0 && bytes.HasPrefix([]byte(added), []byte(madeMark)) {
		if err := os.Remove(string(c)); err != nil {
			return false, unwritable(err)
		}
		return true, nil
	}
	return true, c.write(rest, mode)
}

func includeLine(files Files) string { return "Include \"" + files.Block() + "\"\n" }

// included returns the text that was put in, with its mark; empty if there is none.
func (c Config) included(content []byte, files Files) string {
	for _, first := range []string{mark, madeMark} {
		if added := first + includeLine(files); bytes.Contains(content, []byte(added)) {
			return added
		}
	}
	return ""
}

// read returns the file with its mode, which is 0 if there is none.
func (c Config) read() ([]byte, fs.FileMode, error) {
	content, err := os.ReadFile(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(string(c))
	}
	if err != nil {
		return nil, 0, fault.Wrap(fault.Unavailable, err, "cannot read the configuration of ssh")
	}
	return content, info.Mode().Perm(), nil
}

// write replaces the file, following a link if it is one: people keep it with
// their other settings.
func (c Config) write(content []byte, mode fs.FileMode) error {
	path, err := filepath.EvalSymlinks(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		path, err = string(c), nil
	}
	if err != nil {
		return unwritable(err)
	}
	return replace(path, content, mode)
}
