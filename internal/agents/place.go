package agents

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// largest is how large a settings file may be. Claude Code's, which also remembers
// typed input, reaches some megabytes.
const largest = 32 << 20

// place is one settings file: a directory that bounds it, and the path of the file
// below that, free of symbolic links.
type place struct {
	shown string // as the user knows it
	full  string // where it really is
	base  string
	rel   string
	scope Scope
}

// locate finds where a file really is. A symbolic link is followed: people keep
// their settings elsewhere and link to them. But a file of the repository must be
// in the repository, which may come from another person, and not in its .git.
func locate(repository string, scope Scope, path string) (place, error) {
	p := place{shown: path, scope: scope}
	if scope == Project {
		base, err := filepath.EvalSymlinks(repository)
		if err != nil {
			return place{}, fault.Wrap(fault.NotFound, bare(err), "cannot open the repository %q", repository)
		}
		p.base, path = base, filepath.Join(base, path)
	}
	full, err := resolve(path)
	if err != nil {
		return place{}, fault.Wrap(fault.Denied, bare(err), "cannot change %s", display(p.shown)).
			WithHint("look where it leads: ls -l %s", display(p.shown))
	}
	p.full = full
	if scope == User {
		for p.base = filepath.Dir(full); ; p.base = filepath.Dir(p.base) {
			if info, err := os.Stat(p.base); err == nil && info.IsDir() || p.base == "/" {
				break
			}
		}
	}
	p.rel, err = filepath.Rel(p.base, full)
	outside := err != nil || !filepath.IsLocal(p.rel)
	if outside || scope == Project && strings.EqualFold(strings.SplitN(p.rel, "/", 2)[0], ".git") {
		return place{}, fault.New(fault.Denied, "cannot change %s: it is a symbolic link to %s, where files of a repository do not belong", display(p.shown), display(full)).
			WithHint("put a regular file there, or use --scope user")
	}
	return p, nil
}

// resolve follows the symbolic links of a path whose end may not exist yet.
func resolve(path string) (string, error) {
	full, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return full, err
	}
	if _, err := os.Lstat(path); err == nil {
		return "", errors.New("it is a symbolic link to something that is not there")
	}
	dir, err := resolve(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// read gives the content; nil where there is no file.
func (p place) read() ([]byte, error) {
	root, err := os.OpenRoot(p.base)
	if err != nil {
		return nil, p.unreadable(err)
	}
	defer root.Close()
	return p.readIn(root)
}

func (p place) readIn(root *os.Root) ([]byte, error) {
	info, err := root.Lstat(p.rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, p.unreadable(err)
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.Denied, "cannot change %s: it is not a regular file", display(p.shown)).WithHint("ls -ld %s", display(p.full))
	case info.Size() > largest:
		return nil, fault.New(fault.Invalid, "cannot change %s: it has %d bytes, and settings have at most %d", display(p.shown), info.Size(), largest)
	}
	// The owner decides what is in it. Root, run by the human, keeps the owner.
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() != 0 && int(owner.Uid) != os.Geteuid() {
		return nil, fault.New(fault.Denied, "cannot change %s: it belongs to user %d, not to you", display(p.shown), owner.Uid).WithHint("ls -l %s", display(p.full))
	}
	f, err := root.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, p.unreadable(err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err != nil {
		return nil, p.unreadable(err)
	}
	if content == nil {
		content = []byte{} // there, and empty
	}
	return content, nil
}

func (p place) unreadable(err error) error {
	return fault.Wrap(kindOf(err), bare(err), "cannot read %s", display(p.shown))
}

// write replaces before (nil for a missing file) by content, atomically. It returns
// the directories that it made.
func (p place) write(before, content []byte) (made []string, err error) {
	root, err := os.OpenRoot(p.base)
	if err != nil {
		return nil, p.unwritable(err)
	}
	defer root.Close()
	dir := filepath.Dir(p.rel)
	if made, err = p.directories(root, dir); err != nil {
		return made, p.unwritable(err)
	}
	temporary := filepath.Join(dir, "."+filepath.Base(p.rel)+"-"+strconv.Itoa(os.Getpid()))
	if err := p.fill(root, temporary, content); err != nil {
		return made, p.unwritable(errors.Join(err, ignoreMissing(root.Remove(temporary))))
	}
	// As late as possible: a running client writes its settings, too.
	if err := p.unchanged(root, before); err != nil {
		return made, errors.Join(err, ignoreMissing(root.Remove(temporary)))
	}
	if err := root.Rename(temporary, p.rel); err != nil {
		return made, p.unwritable(errors.Join(err, ignoreMissing(root.Remove(temporary))))
	}
	return made, nil
}

// directories makes the missing directories of a path.
func (p place) directories(root *os.Root, dir string) (made []string, err error) {
	mode := os.FileMode(0o755)
	if p.scope == User {
		mode = 0o700
	}
	at := ""
	for _, name := range strings.Split(filepath.ToSlash(dir), "/") {
		at = filepath.Join(at, name)
		if _, err := root.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := root.Mkdir(at, mode); err != nil && !errors.Is(err, fs.ErrExist) {
			return made, err
		}
		if err := inherit(root, at); err != nil {
			return made, err
		}
		made = append(made, filepath.Join(p.base, at))
	}
	return made, nil
}

// fill writes a temporary file with the mode and owner of the one that it replaces.
func (p place) fill(root *os.Root, temporary string, content []byte) (err error) {
	mode := os.FileMode(0o644)
	if p.scope == User {
		mode = 0o600 // such files hold tokens
	}
	if err := ignoreMissing(root.Remove(temporary)); err != nil { // of a killed process
		return err
	}
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(content); err != nil {
		return err
	}
	info, err := root.Lstat(p.rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = inherit(root, temporary)
	case err == nil:
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && (int(owner.Uid) != os.Geteuid() || int(owner.Gid) != os.Getegid()) {
			// A user who may not give a file away keeps their own group.
			if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil && !errors.Is(err, syscall.EPERM) {
				return err
			}
		}
		err = f.Chmod(info.Mode().Perm())
	}
	if err != nil {
		return err
	}
	return f.Sync() // before the rename, or a power loss can leave an empty file
}

// inherit gives files that root makes to the owner of the directory around them: a
// user of sudo wants no settings that only root can change.
func inherit(root *os.Root, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := root.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil
	}
	return root.Lchown(path, int(owner.Uid), int(owner.Gid))
}

func (p place) unchanged(root *os.Root, before []byte) error {
	now, err := p.readIn(root)
	if err != nil {
		return err
	}
	if (now == nil) != (before == nil) || !bytes.Equal(now, before) {
		return fault.New(fault.Conflict, "cannot change %s: another program has just done so", display(p.shown)).WithHint("the same command again")
	}
	return nil
}

// remove deletes the file.
func (p place) remove(before []byte) error {
	root, err := os.OpenRoot(p.base)
	if err != nil {
		return p.unwritable(err)
	}
	defer root.Close()
	if err := p.unchanged(root, before); err != nil {
		return err
	}
	if err := ignoreMissing(root.Remove(p.rel)); err != nil {
		return p.unwritable(err)
	}
	return nil
}

// clearAway removes the directories that were made for files, once they are empty.
func clearAway(made []string) {
	slices.SortFunc(made, func(a, b string) int { return len(b) - len(a) }) // inner ones first
	for _, dir := range made {
		_ = syscall.Rmdir(dir) // fails where something else is in it
	}
}

func (p place) unwritable(err error) error {
	return fault.Wrap(kindOf(err), bare(err), "cannot write %s", display(p.shown)).WithHint("ls -ld %s", display(filepath.Dir(p.full)))
}

func kindOf(err error) fault.Kind {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fault.Denied
	}
	return fault.Unavailable
}

// bare is an error without the path, which precedes it already.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// display quotes a path only where it needs it: a name may hold escapes.
func display(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
