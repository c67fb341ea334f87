package userland

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// largest bounds a file of /etc or of the package manager's records.
const largest = 64 << 20

// copier makes a foundation.
type copier struct {
	ctx      context.Context
	root, to string
	owner    Owner
}

// everyone are the bits that let every user of the host read a file, or enter
// and list a directory.
func everyone(mode fs.FileMode) bool {
	if mode.IsDir() {
		return mode&0o005 == 0o005
	}
	return mode&0o004 != 0
}

// tree makes the directories below name, and with files copies those that every
// user of the host can read. Others are left out, for root too.
func (c copier) tree(name string, files bool) error {
	return filepath.WalkDir(filepath.Join(c.root, name), func(path string, entry fs.DirEntry, err error) error {
		if c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		if err != nil {
			return nil // it is gone, or not readable here
		}
		below, err := filepath.Rel(c.root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			info, err := entry.Info()
			if err != nil {
				return nil
			}
			if !everyone(info.Mode()) {
				return filepath.SkipDir
			}
			return c.make(below, info.Mode().Perm()|0o700)
		}
		if !files || own(below) {
			return nil
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			if err != nil {
				return nil
			}
			return c.link(target, below)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		return c.copy(path, below)
	})
}

func (c copier) copy(path, name string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || !everyone(info.Mode()) || info.Size() > largest {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	return c.file(name, f, info.Mode().Perm())
}

func (c copier) file(name string, content io.Reader, mode fs.FileMode) error {
	at := filepath.Join(c.to, name)
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Chmod(mode), f.Close(), c.give(name))
}

func (c copier) link(target, name string) error {
	if err := os.Symlink(target, filepath.Join(c.to, name)); err != nil {
		return err
	}
	return c.give(name)
}

// make makes a directory; an existing one stays as it is.
func (c copier) make(name string, mode fs.FileMode) error {
	at := filepath.Join(c.to, name)
	err := os.Mkdir(at, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(at, mode), c.give(name))
}

// parents makes the directories above name.
func (c copier) parents(name string) error {
	for n, r := range name {
		if r == '/' {
			if err := c.make(name[:n], 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c copier) give(name string) error {
	if !c.owner.Chown {
		return nil
	}
	return os.Lchown(filepath.Join(c.to, name), c.owner.UID, c.owner.GID)
}

// listed makes the directories below /var that packages of the host have: their
// scripts expect them. Their content is not copied.
func (c copier) listed() error {
	lists, err := filepath.Glob(filepath.Join(c.root, "var/lib/dpkg/info/*.list"))
	if err != nil {
		return err
	}
	for _, list := range lists {
		if err := c.listedIn(list); err != nil {
			return err
		}
	}
	return nil
}

func (c copier) listedIn(list string) error {
	f, err := os.Open(list)
	if err != nil {
		return nil // it is gone
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name := strings.TrimPrefix(filepath.Clean(lines.Text()), "/")
		if !strings.HasPrefix(name, "var/") {
			continue
		}
		info, err := os.Lstat(filepath.Join(c.root, name))
		if err != nil || !info.IsDir() || !everyone(info.Mode()) {
			continue
		}
		if err := errors.Join(c.parents(name), c.make(name, 0o755)); err != nil {
			return err
		}
	}
	return nil // a list that cannot be read further only lacks directories
}
