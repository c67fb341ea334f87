package frozen

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// Search lists the files of the layer in the directory dir that contain one of
// the texts, and which. It reads every file whole.
func Search(dir string, texts [][]byte) ([]Found, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	top, err := hostile.Directory(dir)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot search a layer")
	}
	defer top.Close()
	s := newSearcher(texts)
	root, err := hostile.OpenAt(top, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		err = errors.Join(s.directory(root, "", 0), root.Close())
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot search a layer")
	}
	return s.found, nil
}

func (s *searcher) directory(dir *os.File, path string, depth int) error {
	if depth > deepest {
		return fault.New(fault.Unsupported, "cannot search directories of more than %d levels", deepest)
	}
	names, err := hostile.Names(dir, -1)
	if err != nil {
		return err
	}
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			below, done, err := enter(dir, name, &st, unix.O_RDONLY|unix.O_DIRECTORY, 0o500)
			if err != nil {
				return err
			}
			if err := errors.Join(s.directory(below, inside(path, name), depth+1), done()); err != nil {
				return err
			}
		case unix.S_IFREG:
			f, done, err := enter(dir, name, &st, unix.O_RDONLY, 0o400)
			if err != nil {
				return err
			}
			if err := errors.Join(s.file(f, inside(path, name)), done()); err != nil {
				return err
			}
		case unix.S_IFLNK:
			target := make([]byte, unix.PathMax+1)
			n, err := unix.Readlinkat(int(dir.Fd()), name, target)
			if err != nil {
				return err
			}
			s.look(target[:n], inside(path, name), make([]bool, len(s.texts)))
		}
		s.look([]byte(name), inside(path, name), make([]bool, len(s.texts)))
	}
	return nil
}

// largestRewritten bounds a file that is rewritten as a whole.
const largestRewritten = 64 << 20

// Rewrite gives a sandbox, which has not run, its own version of a file of the
// layer that it stands on. path begins with the part that the file is in.
func (b Box) Rewrite(layer, path string, edit func([]byte) []byte) error {
	fail := func(err error) error {
		return fault.Wrap(fault.Unavailable, err, "cannot rewrite %q for a sandbox", path)
	}
	if !isName(layer) {
		return fault.New(fault.Internal, "cannot use the layer %q", layer)
	}
	part, below, to := splitPart(path)
	if part == "" {
		return fault.New(fault.Internal, "cannot rewrite %q: it is in no part of a golden", path)
	}
	from, err := hostile.Directory(b.layer(layer) + "/" + part)
	if err != nil {
		return fail(err)
	}
	defer from.Close()
	if err := os.MkdirAll(b.Dir+"/"+to, 0o755); err != nil {
		return fail(err)
	}
	at, err := hostile.Directory(b.Dir + "/" + to)
	if err != nil {
		return fail(err)
	}
	defer at.Close()
	c := &copier{owner: b.Owner, to: at, linked: map[uint64]string{}}
	if err := c.rewrite(from, below, edit); err != nil {
		return fail(err)
	}
	return nil
}
