package userland

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Adopt makes again, in the layer, the entries of the root file system that have
// another owner than its top: a place has an id for one owner, and overlayfs
// copies up nothing without one (EOVERFLOW). Entries that not everyone can read
// stay out: such a directory is then empty, and the passwords let no one sign in.
func (a Above) Adopt(ctx context.Context) error {
	var top unix.Stat_t
	if err := unix.Lstat(a.Root, &top); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot look at the base image %q", a.Root)
	}
	if !a.Owner.Chown { // no other ids are possible
		if top.Uid != uint32(os.Geteuid()) {
			return fault.New(fault.Unsupported, "cannot install packages above the base image %q: the directory belongs to another user", a.Root).
				WithHint("mmdebstrap stable rootfs.tar && mkdir rootfs && tar -xf rootfs.tar --exclude='./dev/*' -C rootfs")
		}
		top.Gid = uint32(os.Getegid())
	}
	err := os.MkdirAll(filepath.Dir(a.To), 0o700)
	c := copier{ctx: ctx, root: a.Root, to: a.To, owner: a.Owner}
	if err == nil {
		err = c.make("", 0o755)
	}
	if err == nil {
		err = filepath.WalkDir(a.Root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return nil // it is gone, or not readable here
			case path == a.Root:
				return nil
			}
			name := strings.TrimPrefix(path, a.Root+"/")
			if entry.IsDir() && slices.Contains([]string{"dev", "proc", "sys", "run", "tmp"}, name) {
				return fs.SkipDir // a place has its own
			}
			return a.one(c, name, top)
		})
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot prepare the base image for packages")
	}
	return nil
}

// one makes one file or directory again, if it has another owner.
func (a Above) one(c copier, name string, top unix.Stat_t) error {
	path := filepath.Join(a.Root, name)
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Uid == top.Uid && st.Gid == top.Gid {
		return nil
	}
	if err := a.parents(c, name); err != nil {
		return err
	}
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if everyone(mode | fs.ModeDir) {
			return c.make(name, mode|0o700)
		}
		err := c.make(name, mode|0o700)
		if err == nil {
			err = unix.Lsetxattr(filepath.Join(a.To, name), "user.overlay.opaque", []byte("y"), 0)
		}
		if err == nil {
			err = fs.SkipDir
		}
		return err
	case unix.S_IFLNK:
		target, err := os.Readlink(path)
		if err != nil {
			return nil
		}
		return c.link(target, name)
	case unix.S_IFREG:
		switch name {
		case "etc/shadow":
			return c.locked("etc/passwd", name, noPassword)
		case "etc/gshadow":
			return c.locked("etc/group", name, noGroupPassword)
		}
		return c.copy(path, name)
	}
	return nil
}

// parents makes the directories above name, as they are in the root file system.
func (a Above) parents(c copier, name string) error {
	for n, r := range name {
		if r != '/' {
			continue
		}
		info, err := os.Lstat(filepath.Join(a.Root, name[:n]))
		if err == nil {
			err = c.make(name[:n], info.Mode().Perm()|0o700)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// locked makes the password file for the names in another file.
func (c copier) locked(from, name, rest string) error {
	path := filepath.Join(c.root, from)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > largest {
		return nil // then there are no names
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for line := range strings.Lines(string(data)) {
		if user, _, ok := strings.Cut(line, ":"); ok {
			lines.WriteString(user + rest)
		}
	}
	return c.file(name, strings.NewReader(lines.String()), 0o640)
}
