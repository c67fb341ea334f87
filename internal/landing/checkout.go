package landing

import (
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// checkout is the human's files, seen a directory at a time: files that follow each
// other are mostly neighbours. No link in a path is followed.
type checkout struct {
	top    *os.Root
	format string // of git's objects
	buffer []byte

	entered bool
	dir     string   // the directory that was entered last
	at      *os.Root // it, or nil where it is not there
	why     string   // or where something else is in the way
}

func openCheckout(r *git.Repository) (*checkout, error) {
	top, err := os.OpenRoot(r.Top)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open %q", r.Top)
	}
	return &checkout{top: top, format: r.ObjectFormat, buffer: make([]byte, 1<<16)}, nil
}

// Close closes what is open.
func (c *checkout) Close() error {
	c.leave()
	return c.top.Close()
}

// leave forgets the directory: it may be made, or go.
func (c *checkout) leave() {
	if c.at != nil && c.at != c.top {
		_ = c.at.Close() // nothing was written to it
	}
	c.entered, c.dir, c.at, c.why = false, "", nil, ""
}

// enter opens a directory, if it is there.
func (c *checkout) enter(dir string) error {
	if c.entered && c.dir == dir {
		return nil
	}
	c.leave()
	at, passed := c.top, "."
	if dir != "." {
		for part := range strings.SplitSeq(dir, "/") {
			passed = path.Join(passed, part)
			below, err := into(at, part)
			if at != c.top {
				_ = at.Close() // nothing was written to it
			}
			at = below
			if errors.Is(err, errNoDirectory) {
				c.why = "in your checkout " + passed + " is not a directory"
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fault.Wrap(fault.Unavailable, err, "cannot look into %q", passed)
			}
			if err != nil {
				break
			}
		}
	}
	c.entered, c.dir, c.at = true, dir, at
	return nil
}

var errNoDirectory = errors.New("it is not a directory")

// into opens a directory by its name, and none that a link leads to.
func into(at *os.Root, name string) (*os.Root, error) {
	seen, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, errNoDirectory
	}
	below, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	found, err := below.Stat(".")
	if err == nil && !os.SameFile(seen, found) {
		err = errNoDirectory // by now
	}
	if err != nil {
		return nil, errors.Join(err, below.Close())
	}
	return below, nil
}

// look returns what stands at a path, nil for nothing; or why a change cannot come
// there: only files and links are replaced.
func (c *checkout) look(name string) (info fs.FileInfo, why string, err error) {
	if err := c.enter(path.Dir(name)); err != nil || c.at == nil {
		return nil, c.why, err
	}
	info, err = c.at.Lstat(path.Base(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	case err != nil:
		return nil, "", fault.Wrap(fault.Unavailable, err, "cannot read %q", name)
	case info.IsDir():
		return info, "in your checkout it is a directory", nil
	case !info.Mode().IsRegular() && !isLink(info):
		return info, "in your checkout it is not a file", nil
	}
	return info, "", nil
}

func isLink(info fs.FileInfo) bool { return info.Mode()&fs.ModeSymlink != 0 }

// hash is the object id of the bytes of what stands at a path, or of where the link
// leads. Look comes before it.
func (c *checkout) hash(name string, info fs.FileInfo) (string, error) {
	h := git.NewHash(c.format)
	err := c.hashInto(h, path.Base(name), info)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read %q", name)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (c *checkout) hashInto(h hash.Hash, name string, info fs.FileInfo) error {
	if isLink(info) {
		target, err := c.at.Readlink(name)
		io.WriteString(h, "blob "+strconv.Itoa(len(target))+"\x00"+target)
		return err
	}
	f, err := c.at.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	io.WriteString(h, "blob "+strconv.FormatInt(info.Size(), 10)+"\x00")
	_, err = io.CopyBuffer(h, onlyRead{f}, c.buffer)
	return err
}

// onlyRead hides other methods, so that a buffer is used again.
type onlyRead struct{ io.Reader }

type onlyWrite struct{ io.Writer }

// make makes the directory of a path, as far as it is missing.
func (c *checkout) make(dir string) error {
	if c.entered && c.dir == dir && c.at != nil {
		return nil
	}
	c.leave()
	if err := c.top.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := c.enter(dir); err != nil {
		return err
	}
	if c.at == nil {
		return fault.New(fault.Conflict, "the directory went while it was written to")
	}
	return nil
}

// beside is the name of a file that is being written, before it takes its place.
const beside = ".litterbox-sync-back"

// write puts a file at a path in one step.
func (c *checkout) write(name string, content io.Reader, executable bool) error {
	mode := fs.FileMode(0o666)
	if executable {
		mode = 0o777
	}
	return c.place(name, func() error {
		f, err := c.at.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.CopyBuffer(onlyWrite{f}, onlyRead{content}, c.buffer)
		return errors.Join(err, f.Close())
	})
}

// link puts a link at a path in one step.
func (c *checkout) link(name, target string) error {
	return c.place(name, func() error { return c.at.Symlink(target, beside) })
}

// place writes what comes to a path beside it first.
func (c *checkout) place(name string, write func() error) error {
	if err := c.make(path.Dir(name)); err != nil {
		return err
	}
	err := write()
	if errors.Is(err, fs.ErrExist) { // left by one that was killed
		if err = c.at.Remove(beside); err == nil {
			err = write()
		}
	}
	if err == nil {
		err = c.at.Rename(beside, path.Base(name))
	}
	if err != nil {
		return errors.Join(err, ignoreGone(c.at.Remove(beside)))
	}
	return nil
}

// remove deletes a file, and the directories that are empty then.
func (c *checkout) remove(name string) error {
	if c.at == nil {
		return nil // it went meanwhile
	}
	if err := c.at.Remove(path.Base(name)); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if c.top.Remove(dir) != nil {
			break // it is not empty
		}
		c.leave()
	}
	return nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
