package landing

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// asideDir holds, below the git directory of a checkout and for as long as git
// merges, untracked files that the merge brings with the same content.
const asideDir = "litterbox-aside"

// Aside are the untracked files that were put aside for a merge. Each is
// renamed out of git's way, so nothing is copied and nothing is lost: it comes
// back unless git has put the same content in its place.
type Aside struct {
	top, dir string
	lock     *os.File
	files    []asideFile
	format   string
}

type asideFile struct {
	path string // in the repository
	raw  string // the object id of its bytes
}

// SetAside clears the way for a merge that makes these changes. Untracked files
// with the content that the merge brings are put aside; other untracked content at
// those paths, ignored files included, is refused, unless overwrite allows
// replacing ignored ones, as in git. The caller calls Restore when git has ended.
func SetAside(ctx context.Context, r *git.Repository, changes []Change, target MergeTarget, args []string) (a *Aside, err error) {
	a = &Aside{top: r.Top, dir: filepath.Join(r.GitDir, asideDir), format: r.ObjectFormat}
	if _, err := os.Lstat(a.dir); err == nil { // left by a killed merge
		if err := a.open(ctx); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			_, restored := a.Restore()
			a, err = nil, errors.Join(err, restored)
		}
	}()
	obstacles, err := obstacles(ctx, r, changes)
	if err != nil || len(obstacles) == 0 {
		return a, err
	}
	var differ []string
	ignored := map[string]bool{}
	if ReadMergeFlags(args).overwrite {
		paths := make([]string, 0, len(obstacles))
		for _, o := range obstacles {
			paths = append(paths, o.at)
		}
		if ignored, err = r.Ignored(ctx, paths); err != nil {
			return a, err
		}
	}
	for _, o := range obstacles {
		same := false
		if o.at == o.change.Path {
			if same, err = a.take(ctx, r, o.change); err != nil {
				return a, err
			}
		}
		if !same && !ignored[o.at] && !slices.Contains(differ, o.at) {
			differ = append(differ, o.at)
		}
	}
	if len(differ) > 0 {
		return a, inTheWay(differ, target)
	}
	return a, nil
}

// open makes the directory and takes its lock, so that one merge at a time uses
// it; leftovers of a killed merge come back first.
func (a *Aside) open(ctx context.Context) error {
	if a.lock != nil {
		return nil
	}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", a.dir)
	}
	name := filepath.Join(a.dir, "lock")
	for a.lock == nil {
		lock, err := layer.LockFile(ctx, name)
		if err != nil {
			return err
		}
		// The previous holder may have removed it with the directory.
		held, err := lock.Stat()
		if there, statErr := os.Stat(name); err == nil && statErr == nil && os.SameFile(held, there) {
			a.lock = lock
			break
		}
		if err := errors.Join(err, lock.Close(), os.MkdirAll(a.dir, 0o700)); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot lock %q", a.dir)
		}
	}
	left, err := os.ReadDir(a.dir)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read %q", a.dir)
	}
	for _, entry := range left {
		if name, err := hex.DecodeString(entry.Name()); err == nil && len(name) > 0 {
			if _, err := a.restore(asideFile{path: string(name)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// PutBack restores what an earlier merge has left aside.
func PutBack(ctx context.Context, r *git.Repository) error {
	a := &Aside{top: r.Top, dir: filepath.Join(r.GitDir, asideDir), format: r.ObjectFormat}
	if _, err := os.Lstat(a.dir); err != nil {
		return nil
	}
	err := a.open(ctx)
	_, restored := a.Restore()
	return errors.Join(err, restored)
}

// at is where a file is kept while it is put aside: in hex, because file names
// are any bytes; a name that is too long for that stays where it is, for git to
// refuse.
func (a *Aside) at(name string) (string, bool) {
	encoded := hex.EncodeToString([]byte(name))
	return filepath.Join(a.dir, encoded), len(encoded) <= 255
}

// take puts a file aside if it has the content that the change brings. It is
// hashed after the move: later writes to the path go to another file.
func (a *Aside) take(ctx context.Context, r *git.Repository, c Change) (bool, error) {
	from := filepath.Join(a.top, filepath.FromSlash(c.Path))
	to, ok := a.at(c.Path)
	if info, err := os.Lstat(from); err != nil || !ok || !(info.Mode().IsRegular() && c.NewMode != git.ModeLink || info.Mode()&fs.ModeSymlink != 0 && c.NewMode == git.ModeLink) {
		return false, nil
	}
	if err := a.open(ctx); err != nil {
		return false, err
	}
	if err := renameNew(from, to); err != nil {
		return false, nil // on another file system: git refuses, and nothing is lost
	}
	file := asideFile{path: c.Path}
	var err error
	if file.raw, err = hashFile(to, a.format); err == nil && file.raw != c.NewOid && c.NewMode != git.ModeLink {
		var converted string
		if converted, err = hashAs(ctx, r, to, c.Path); err == nil && converted != c.NewOid {
			file.raw = ""
		}
	} else if err == nil && file.raw != c.NewOid {
		file.raw = ""
	}
	if err != nil || file.raw == "" {
		_, back := a.restore(file)
		return false, errors.Join(err, back)
	}
	a.files = append(a.files, file)
	return true, nil
}

// hashAs hashes a file as git would add it at a path, with git's own
// conversions only.
func hashAs(ctx context.Context, r *git.Repository, file, name string) (string, error) {
	s, err := r.AllSettings(ctx)
	if err != nil {
		return "", err
	}
	in, err := os.Open(file)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read %q", name)
	}
	defer in.Close()
	c := r.InCheckout("hash-object", "--stdin", "--path="+name)
	c.Config, c.Stdin = withoutFilters(s), in
	oid, err := c.Line(ctx)
	if err != nil {
		return "", fault.Wrap("", err, "cannot compare %q with what the merge brings", name)
	}
	return oid, nil
}

// hashFile is the object id of a file's bytes, or of where a link leads.
func hashFile(name, format string) (string, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read %q", name)
	}
	h := git.NewHash(format)
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(name)
		if err != nil {
			return "", fault.Wrap(fault.Unavailable, err, "cannot read %q", name)
		}
		io.WriteString(h, "blob "+strconv.Itoa(len(target))+"\x00"+target)
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	if !info.Mode().IsRegular() {
		return "", fault.New(fault.Conflict, "cannot read %q: it is not a file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read %q", name)
	}
	defer f.Close()
	io.WriteString(h, "blob "+strconv.FormatInt(info.Size(), 10)+"\x00")
	if _, err := io.Copy(h, f); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read %q", name)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Keep leaves the files aside as long as a merge waits for the human: leaving it
// would delete the files that git has put in their places. The next merge, and
// the end of this one by litterbox, puts back those missing then.
func (a *Aside) Keep() (paths []string, err error) {
	if a == nil || a.lock == nil {
		return nil, nil
	}
	for _, file := range a.files {
		paths = append(paths, file.path)
	}
	a.files = nil
	err = a.lock.Close()
	a.lock = nil
	return paths, err
}

// Restore puts back the files that git has not replaced, whether or not the merge
// succeeded, and drops the rest. Where a file was written to meanwhile and git
// has put another in its place, both stay; kept names those.
func (a *Aside) Restore() (kept []string, err error) {
	if a == nil || a.lock == nil {
		return nil, nil
	}
	for _, file := range a.files {
		other, failed := a.restore(file)
		if other != "" {
			kept = append(kept, other)
		}
		err = errors.Join(err, failed)
	}
	a.files = nil
	if err == nil {
		// The lock goes with the directory; see open.
		if left, readErr := os.ReadDir(a.dir); readErr == nil && len(left) == 1 {
			err = os.RemoveAll(a.dir)
		}
	}
	err = errors.Join(err, a.lock.Close())
	a.lock = nil
	return kept, err
}

// restore puts one file back, or drops it when the place has the same content.
func (a *Aside) restore(file asideFile) (kept string, err error) {
	from, _ := a.at(file.path)
	to := filepath.Join(a.top, filepath.FromSlash(file.path))
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot put %q back from %q", file.path, from)
	}
	switch err := renameNew(from, to); {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return "", nil
	case !errors.Is(err, fs.ErrExist):
		return "", fault.Wrap(fault.Unavailable, err, "cannot put %q back from %q", file.path, from)
	}
	now, err := hashFile(from, a.format)
	if err != nil {
		return "", err
	}
	there, err := hashFile(to, a.format)
	if err == nil && (now == file.raw || now == there) {
		return "", os.Remove(from)
	}
	for n := 1; n < 1000; n++ {
		name := file.path + ".mine"
		if n > 1 {
			name += strconv.Itoa(n)
		}
		err := renameNew(from, filepath.Join(a.top, filepath.FromSlash(name)))
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fault.Wrap(fault.Unavailable, err, "cannot put %q back from %q", file.path, from)
		}
	}
	return "", fault.New(fault.Unavailable, "cannot put %q back from %q", file.path, from)
}

// renameNew renames a file to a name that must be free.
func renameNew(from, to string) error { return renameBy(renameExclusive, from, to) }

// renameBy renames by one call of the system, where the file system has it.
func renameBy(exclusive func(from, to string) error, from, to string) error {
	err := exclusive(from, to)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return renameFree(from, to)
	}
	return err
}

// renameFree renames a file unless the new name is taken, as seen right before.
func renameFree(from, to string) error {
	switch _, err := os.Lstat(to); {
	case err == nil:
		return fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return os.Rename(from, to)
}
