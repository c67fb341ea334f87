package overlay

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"golang.org/x/sys/unix"
)

// The entries of a scratch directory.
const (
	scratchPrefix = "litterbox-rename-"
	treeName      = "tree"    // the directory that takes the place of the old one
	journalName   = "journal" // where the old one is: a path, as bytes
	probeName     = "probe"   // a directory that is never empty
	probeContent  = "full"
)

// scratch is a hidden directory on the workspace's overlay where a directory
// is rebuilt.
type scratch struct {
	base   int // the directory it is in
	name   string
	dir    int
	hidden bool // it is in .git
}

// newScratch makes one in .git, where no commit looks, or in the workspace
// itself when there is no .git or when that is what moves (nil: nothing).
func newScratch(workspace string, moving *unix.Stat_t) (*scratch, error) {
	base, err := openPath(filepath.Join(workspace, ".git"))
	var git, root unix.Stat_t
	if err == nil && (unix.Fstat(base, &git) != nil || unix.Stat(workspace, &root) != nil ||
		git.Dev != root.Dev || moving != nil && git.Dev == moving.Dev && git.Ino == moving.Ino) {
		unix.Close(base)
		err = unix.EXDEV
	}
	hidden := err == nil
	if !hidden {
		if base, err = openPath(workspace); err != nil {
			return nil, err
		}
	}
	s := &scratch{base: base, name: scratchPrefix + rand.Text(), dir: -1, hidden: hidden}
	if s.dir, err = makeDirectory(base, s.name); err != nil {
		unix.Close(base)
		return nil, err
	}
	if err := errors.Join(
		unix.Mkdirat(s.dir, probeName, 0o700),
		unix.Mkdirat(s.dir, probeName+"/"+probeContent, 0o700),
	); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// movable tries whether a directory can be renamed as it is, without moving
// it: onto a directory that is not empty. The overlay refuses what it cannot
// move (EXDEV) before it looks at the target (ENOTEMPTY); ovl_rename in
// fs/overlayfs/dir.c. Any other refusal is not ours to fix.
func (s *scratch) movable(parent int, name string, mode uint32) bool {
	err := unix.Renameat(parent, name, s.dir, probeName)
	if err == unix.EACCES && mode&0o200 == 0 {
		// A read-only directory may change its name, but not its parent.
		if dir, openErr := openDirectory(parent, name); openErr == nil {
			defer unix.Close(dir)
			if unix.Fchmod(dir, mode&0o7777|0o200) == nil {
				err = unix.Renameat(parent, name, s.dir, probeName)
				_ = unix.Fchmod(dir, mode&0o7777)
			}
		}
	}
	return err != unix.EXDEV
}

// note writes down where the directory is, for RecoverRenames.
func (s *scratch) note(where string) error {
	fd, err := unix.Openat(s.dir, journalName, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), journalName)
	_, err = f.WriteString(where)
	return errors.Join(err, f.Close())
}

// putBack returns what the tree holds to the directory it came from. When a
// file of the same name has appeared there meanwhile, that one stays and ours
// is kept in the scratch directory.
func (s *scratch) putBack(parent int, name string) error {
	return putBack(s.dir, treeName, parent, name, 0)
}

func putBack(fromDir int, from string, toDir int, to string, depth int) error {
	err := unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	if err == unix.EACCES {
		// A directory moves to another parent only while it is writable.
		if dir, openErr := openDirectory(fromDir, from); openErr == nil {
			defer unix.Close(dir)
			var st unix.Stat_t
			if unix.Fstat(dir, &st) == nil && makeWritable(dir, st.Mode) == nil {
				err = unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
				_ = unix.Fchmod(dir, st.Mode&0o7777)
			}
		}
	}
	if err != unix.EEXIST {
		return err
	}
	if depth > maxDepth {
		return unix.ELOOP
	}
	source, err := openDirectory(fromDir, from)
	if err != nil {
		return unix.EEXIST // a file: both stay
	}
	defer unix.Close(source)
	target, err := openDirectory(toDir, to)
	if err != nil {
		return unix.EEXIST
	}
	defer unix.Close(target)
	var st, sourceStat unix.Stat_t
	if err := errors.Join(unix.Fstat(target, &st), unix.Fstat(source, &sourceStat)); err != nil {
		return err
	}
	if err := errors.Join(makeWritable(target, st.Mode), makeWritable(source, sourceStat.Mode)); err != nil {
		return err
	}
	names, err := childNames(source)
	for _, name := range names {
		err = errors.Join(err, putBack(source, name, target, name, depth+1))
	}
	_ = unix.Fchmod(target, st.Mode&0o7777)
	if err != nil {
		return err
	}
	return unix.Unlinkat(fromDir, from, unix.AT_REMOVEDIR)
}

// close removes the scratch directory, unless it still holds files.
func (s *scratch) close() {
	_ = unix.Unlinkat(s.dir, probeName+"/"+probeContent, unix.AT_REMOVEDIR)
	_ = unix.Unlinkat(s.dir, probeName, unix.AT_REMOVEDIR)
	err := unix.Unlinkat(s.dir, treeName, unix.AT_REMOVEDIR)
	if err == nil || err == unix.ENOENT {
		_ = unix.Unlinkat(s.dir, journalName, 0)
		_ = unix.Unlinkat(s.base, s.name, unix.AT_REMOVEDIR)
	}
	unix.Close(s.dir)
	unix.Close(s.base)
}

// RecoverRenames puts back what a crash left in scratch directories.
func RecoverRenames(workspace string) {
	for _, at := range []string{filepath.Join(workspace, ".git"), workspace} {
		names, err := proc.ReadNames(at)
		if err != nil {
			continue
		}
		for _, name := range names {
			if strings.HasPrefix(name, scratchPrefix) {
				recoverRename(at, name)
			}
		}
	}
}

func recoverRename(at, name string) {
	base, err := openPath(at)
	if err != nil {
		return
	}
	s := &scratch{base: base, name: name}
	if s.dir, err = openDirectory(base, name); err != nil {
		unix.Close(base)
		return
	}
	defer s.close()
	where, err := proc.ReadSmall(filepath.Join(at, name, journalName), unix.PathMax)
	if err != nil {
		return // the move had not begun
	}
	parent, err := openPath(filepath.Dir(string(where)))
	if err != nil {
		return // its place is gone: the content stays in the scratch directory
	}
	defer unix.Close(parent)
	_ = s.putBack(parent, filepath.Base(string(where)))
}

// childNames lists a directory from its beginning.
func childNames(dir int) ([]string, error) {
	fd, err := openDirectory(dir, ".") // for a position of its own
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	return f.Readdirnames(-1)
}

// location is the path that a descriptor stands for.
func location(fd int) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}
