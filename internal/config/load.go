package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
)

// RepositoryFile is the name of the configuration at the top of a repository.
const RepositoryFile = ".litterbox.toml"

// MaxSize is the largest file that is read, in bytes. The decoder looks through
// all names of a table for each new one: a file of 1 MiB that came with a clone
// kept it busy for 20 seconds, one of this size for a third of one.
const MaxSize = 128 << 10

// Load reads the configuration of the checkout at repoTop: the human's, never a
// sandbox's. A missing file is not an error. A symbolic link is refused: it comes with
// a clone and could point at any file of the user's, whose lines errors would then
// quote.
func Load(repoTop string) (Config, error) {
	return read(filepath.Join(repoTop, RepositoryFile), syscall.O_NOFOLLOW, true)
}

// LoadUser reads the human's own configuration. A missing file is not an error, and
// links are followed: dotfiles are often kept elsewhere. A file that another user
// controls is refused: root with that user's HOME would mount and run what it says.
func LoadUser(who *caller.Caller) (Config, error) {
	file, err := ownFile(who)
	if err != nil || file == "" {
		return Config{}, err
	}
	return read(file, 0, false)
}

// ownFile is UserFile if it is there and the user's own, and "" if it is not
// there.
func ownFile(who *caller.Caller) (string, error) {
	file, err := UserFile(who)
	if err != nil {
		return "", err
	}
	// A file that appears only now is not read: its owner was not checked.
	switch err := ownership.Check(file); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case fault.KindOf(err) == fault.Denied:
		return "", fault.Wrap(fault.Denied, err, "cannot use your configuration")
	}
	return file, nil
}

// UserFile is the path of the human's own configuration, existing or not:
// $XDG_CONFIG_HOME/litterbox/config.toml. A relative $XDG_CONFIG_HOME does not
// count (XDG Base Directory Specification); then it is ~/.config.
func UserFile(who *caller.Caller) (string, error) {
	base := who.Get("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		if who.Home == "" {
			return "", fault.New(fault.Invalid, "cannot find the user's configuration: HOME is not set").WithHint("export HOME=/home/you")
		}
		base = filepath.Join(who.Home, ".config")
	}
	return filepath.Join(base, "litterbox", "config.toml"), nil
}

func read(file string, flags int, repository bool) (Config, error) {
	content, err := readFile(file, flags)
	if err != nil || content == nil {
		return Config{}, err
	}
	return parse(file, content, repository)
}

// readFile reads a whole file; nil when there is none.
func readFile(file string, flags int) ([]byte, error) {
	// O_NONBLOCK: opening a named pipe would wait for a writer for ever.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, syscall.ELOOP):
		return nil, fault.New(fault.Denied, "cannot read %s: it is a symbolic link", display(file)).
			WithHint("put a regular file there")
	case err != nil:
		return nil, fault.New(fault.Unavailable, "cannot read %s: %v", display(file), cause(err))
	}
	defer f.Close() // read only: nothing can be lost
	return contentOf(f, file)
}

// contentOf reads an open file, unless it is not a regular file.
func contentOf(f *os.File, file string) ([]byte, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fault.New(fault.Unavailable, "cannot read %s: %v", display(file), cause(err))
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.Denied, "cannot read %s: it is not a regular file", display(file))
	}
	// One byte more than allowed, because the size may change while reading.
	content, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fault.New(fault.Unavailable, "cannot read %s: %v", display(file), cause(err))
	}
	return content, nil
}

// cause drops the path that a PathError repeats.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
