package overlay

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the recursion into a tree, and so the open descriptors.
const maxDepth = 256

// makePlain turns a directory that a lower layer of the overlay has into one
// of the upper layer alone, under the same name and with the same content: a
// new directory grows in a scratch place, takes the children one by one
// (renaming a file copies it up, in the kernel), and replaces the emptied old
// one in one step. A directory that can be renamed already is left alone.
//
// Failures leave everything as it was; a crash is put right by
// RecoverRenames. In both cases a directory below may keep write permission
// for its owner that it did not have.
func (r *renamer) makePlain(path string) {
	above, name := splitPath(path)
	parent, err := openPath(above)
	if err != nil {
		return
	}
	defer unix.Close(parent)
	if r.isPlain(parent, name) {
		return
	}
	// The journal needs a name that still holds when this caller is gone.
	where, err := location(parent)
	if err != nil || where != r.workspace && !strings.HasPrefix(where, r.workspace+"/") {
		return
	}
	var old unix.Stat_t
	if unix.Fstatat(parent, name, &old, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	s, err := newScratch(r.workspace, &old)
	if err != nil {
		return
	}
	defer s.close()
	if s.movable(parent, name, old.Mode) {
		return
	}
	if s.note(filepath.Join(where, name)) != nil {
		return
	}
	if s.replace(parent, name, &old) != nil {
		_ = s.putBack(parent, name)
	}
}

// isPlain is the quick way for directories made in the sandbox itself (package
// managers rename those by the thousand): a probe that stays in .git. When it
// has no answer, nothing is lost.
func (r *renamer) isPlain(parent int, name string) bool {
	if r.probe == nil {
		s, err := newScratch(r.workspace, nil)
		if err != nil || !s.hidden {
			if err == nil {
				s.close()
			}
			return false
		}
		r.probe = s
	}
	switch err := unix.Renameat(parent, name, r.probe.dir, probeName); err {
	case unix.ENOTEMPTY:
		return true
	case nil:
		// The probe was emptied; it was indeed a rename.
		_ = unix.Renameat(r.probe.dir, probeName, parent, name)
	case unix.ENOENT:
	default:
		return false
	}
	r.probe.close()
	r.probe = nil
	return false
}

// replace moves the content of a directory into the scratch tree and puts the
// tree into its place.
func (s *scratch) replace(parent int, name string, old *unix.Stat_t) error {
	const passes = 8 // others may go on making files in it meanwhile
	tree, err := makeDirectory(s.dir, treeName)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	from, err := openDirectory(parent, name)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	if err := makeWritable(from, old.Mode); err != nil {
		return err
	}
	for pass := 1; ; pass++ {
		err = moveChildren(from, tree, 0)
		if err == nil {
			copyAttributes(from, tree, old)
			err = unix.Renameat(s.dir, treeName, parent, name)
		}
		if err == nil || err != unix.ENOTEMPTY || pass == passes {
			break
		}
	}
	if err != nil {
		_ = unix.Fchmod(from, old.Mode&0o7777)
		return err
	}
	// Last: a directory moves to another parent only while it is writable.
	_ = unix.Fchmod(tree, old.Mode&0o7777)
	setTimes(parent, name, old)
	return nil
}

// moveChildren renames everything in one directory into another, and recurses
// where a child is itself a directory of a lower layer.
func moveChildren(from, to, depth int) error {
	names, err := childNames(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := unix.Renameat(from, name, to, name)
		if err == unix.EACCES || err == unix.EXDEV {
			err = moveDirectory(from, to, name, depth+1)
		}
		if err != nil && err != unix.ENOENT { // gone since it was listed
			return err
		}
	}
	return nil
}

// moveDirectory moves a directory that a plain rename could not: a directory of
// a lower layer, or one that is read-only.
func moveDirectory(from, to int, name string, depth int) error {
	if depth > maxDepth {
		return unix.ELOOP
	}
	old, err := openDirectory(from, name)
	if err != nil {
		return err
	}
	defer unix.Close(old)
	var st unix.Stat_t
	if err := unix.Fstat(old, &st); err != nil {
		return err
	}
	if err := makeWritable(old, st.Mode); err != nil {
		return err
	}
	if unix.Renameat(from, name, to, name) != nil {
		err = rebuildDirectory(from, old, to, name, &st, depth)
	}
	_ = unix.Fchmod(old, st.Mode&0o7777)
	return err
}

// rebuildDirectory makes a new directory with the content of an old one.
func rebuildDirectory(from, old, to int, name string, st *unix.Stat_t, depth int) error {
	plain, err := makeDirectory(to, name)
	if err != nil {
		return err
	}
	defer unix.Close(plain)
	if err := moveChildren(old, plain, depth); err != nil {
		return err
	}
	if err := unix.Unlinkat(from, name, unix.AT_REMOVEDIR); err != nil {
		return err
	}
	copyAttributes(old, plain, st)
	_ = unix.Fchmod(plain, st.Mode&0o7777)
	setTimes(to, name, st)
	return nil
}

// copyAttributes gives a new directory the group and the extended attributes
// of the old one, as far as its owner may.
func copyAttributes(from, to int, old *unix.Stat_t) {
	_ = unix.Fchown(to, -1, int(old.Gid))
	size, err := unix.Flistxattr(from, nil)
	if err != nil || size == 0 {
		return
	}
	list := make([]byte, size)
	if size, err = unix.Flistxattr(from, list); err != nil {
		return
	}
	for name := range strings.SplitSeq(string(list[:size]), "\x00") {
		// The overlay's own marks describe the old directory.
		if name == "" || strings.HasPrefix(name, "user.overlay.") || strings.HasPrefix(name, "trusted.") {
			continue
		}
		if n, err := unix.Fgetxattr(from, name, nil); err == nil {
			value := make([]byte, n)
			if n, err = unix.Fgetxattr(from, name, value); err == nil {
				_ = unix.Fsetxattr(to, name, value[:n], 0)
			}
		}
	}
}

func setTimes(dir int, name string, old *unix.Stat_t) {
	_ = unix.UtimesNanoAt(dir, name, []unix.Timespec{old.Atim, old.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

// makeWritable lets the owner change a directory's content.
func makeWritable(dir int, mode uint32) error {
	if mode&0o700 == 0o700 {
		return nil
	}
	return unix.Fchmod(dir, mode&0o7777|0o700)
}

// makeDirectory makes and opens a directory; an existing one will do.
func makeDirectory(at int, name string) (int, error) {
	if err := unix.Mkdirat(at, name, 0o700); err != nil && err != unix.EEXIST {
		return -1, err
	}
	return openDirectory(at, name)
}

func openDirectory(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// splitPath parts a path before its last name, and cleans nothing: after a
// symbolic link ".." is not what it looks like.
func splitPath(path string) (above, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 1)], path[i+1:]
}

func openPath(path string) (int, error) {
	return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}
