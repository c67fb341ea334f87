package branch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"golang.org/x/sys/unix"
)

// regular hashes one regular file and hands it on when it is new. Whether its
// holes can be taken is for holes to say.
func (s *scan) regular(ctx context.Context, upper layer.Root, path string, dir *directory, holes func(*os.File, *unix.Stat_t) (hollow int64, err error)) (layer.File, error) {
	f, err := upper.Open(path, unix.O_RDONLY)
	if err != nil {
		return layer.File{}, unreadable(err)
	}
	defer f.Close()
	var before, after unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &before); err != nil {
		return layer.File{}, unreadable(err)
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		return layer.File{}, layer.Stays{Why: "it changes while it is read", Passing: true}
	}
	if _, err := s.overlayAttributes(f); err != nil {
		return layer.File{}, err
	}
	if before.Size > s.limits.FileSize {
		return layer.File{}, layer.Stays{Why: fmt.Sprintf("it is larger than %d bytes", s.limits.FileSize)}
	}
	hollow, err := holes(f, &before)
	if err != nil {
		return layer.File{}, err
	}
	found := s.fileOf(&before)
	found.Hollow = hollow
	if found.Oid, err = s.store(ctx, f, path, before.Size, dir); err != nil {
		return layer.File{}, err
	}
	if err := unix.Fstat(int(f.Fd()), &after); err != nil ||
		before.Size != after.Size || before.Mtim != after.Mtim || before.Ctim != after.Ctim {
		found.Ino = 0
	}
	return found, nil
}

// fileOf takes the stat fields; one that may still change unnoticed is marked.
func (s *scan) fileOf(st *unix.Stat_t) layer.File {
	f := layer.File{Mode: git.ModeFile, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Ino: st.Ino}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		f.Mode = git.ModeLink
	case st.Mode&unix.S_IXUSR != 0:
		f.Mode = git.ModeExecutable
	}
	if f.Ctime >= s.start-int64(git.RacyWindow) {
		f.Ino = 0
	}
	return f
}

// store converts, hashes and emits the content of f and returns its raw oid.
func (s *scan) store(ctx context.Context, f *os.File, path string, size int64, dir *directory) (string, error) {
	var a attribute.Attributes
	converts := s.convert || dir.hasAttributes
	if converts {
		a = dir.attributes.Lookup(path)
		converts = attribute.Convert(a, s.settings)
	}
	// No more than was judged: it may grow, by holes, too, while it is read.
	judged := io.LimitReader(contextReader{ctx, f}, size)
	if size > inMemory && (!converts || size > convertible) {
		return s.storeLarge(judged, path)
	}
	content, err := io.ReadAll(judged)
	if err != nil {
		return "", unreadable(err)
	}
	if converts {
		converted, err := attribute.ToGit(content, a, s.settings, func() bool { return s.storedCRLF(path) })
		if err != nil {
			return "", layer.Stays{Why: git.Printable(err.Error())}
		}
		if a.Filter == "lfs" && s.settings.LFS && !bytes.Equal(content, converted) {
			if err := s.largeFile(content); err != nil {
				return "", err
			}
		}
		content = converted
	}
	return s.storeBytes(path, content)
}

func (s *scan) storeBytes(path string, content []byte) (string, error) {
	h := git.NewHash(s.format)
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	oid := string(h.Sum(nil))
	if s.old.files[path].Oid == oid {
		return oid, nil
	}
	return oid, s.take(int64(len(content)), bytes.NewReader(content))
}

// storeLarge takes a private copy first: what is announced, hashed and sent
// must be the same bytes, and the file may change under us.
func (s *scan) storeLarge(judged io.Reader, path string) (string, error) {
	spool, err := os.CreateTemp(s.spoolDir, "spool-")
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot copy %q", path)
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot copy %q", path)
	}
	size, err := io.Copy(spool, judged)
	if err != nil {
		return "", unreadable(err)
	}
	h := git.NewHash(s.format)
	fmt.Fprintf(h, "blob %d\x00", size)
	if _, err := io.Copy(h, io.NewSectionReader(spool, 0, size)); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot copy %q", path)
	}
	oid := string(h.Sum(nil))
	if s.old.files[path].Oid == oid {
		return oid, nil
	}
	return oid, s.take(size, io.NewSectionReader(spool, 0, size))
}

// take emits what is new, as long as the commit has room for it. What it has no
// room for comes with the next one.
func (s *scan) take(size int64, content io.Reader) error {
	if size > s.limits.Commit-s.taken {
		return layer.Stays{Why: fmt.Sprintf("the files of one commit are larger than %d bytes together; the next commit takes it", s.limits.Commit)}
	}
	s.taken += size
	return s.emit(size, content)
}

// symlink hashes the target of one link. Reading through the directory's
// descriptor, nothing is followed.
func (s *scan) symlink(d *os.File, name, path string, st *unix.Stat_t) (layer.File, error) {
	target := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(int(d.Fd()), name, target)
	if err != nil {
		return layer.File{}, unreadable(err)
	}
	found := s.fileOf(st)
	found.Oid, err = s.storeBytes(path, target[:n])
	return found, err
}

// unreadable sorts errors of reading a sandbox's file: what the file itself
// refuses or what vanished meanwhile is a note, anything else ends the import.
func unreadable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EAGAIN):
		return layer.Stays{Why: "it cannot be read"}
	case errors.Is(err, unix.ENAMETOOLONG):
		return layer.Stays{Why: "its path is too long"}
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO),
		errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL):
		return layer.Stays{Why: "it changes while it is read", Passing: true}
	}
	var f *fault.Error
	var stays layer.Stays
	if errors.As(err, &f) || errors.As(err, &stays) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "cannot read a file of the sandbox")
}
