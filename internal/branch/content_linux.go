package branch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/branch/attribute"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// errStays is content that cannot be committed as it is; the path stays as it
// was last committed.
type errStays struct {
	why     string
	passing bool // the next commit may well take it
}

func (e errStays) Error() string { return e.why }

// regular hashes one regular file and hands it on when it is new. Whether its
// holes can be taken is for holes to say.
func (s *scan) regular(ctx context.Context, upper root, path string, dir *directory, holes func(*os.File, *unix.Stat_t) (hollow int64, err error)) (file, error) {
	f, err := upper.open(path, unix.O_RDONLY)
	if err != nil {
		return file{}, unreadable(err)
	}
	defer f.Close()
	var before, after unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &before); err != nil {
		return file{}, unreadable(err)
	}
	if before.Mode&unix.S_IFMT != unix.S_IFREG {
		return file{}, errStays{"it changes while it is read", true}
	}
	if _, err := s.overlayAttributes(f); err != nil {
		return file{}, err
	}
	if before.Size > s.limits.FileSize {
		return file{}, errStays{why: fmt.Sprintf("it is larger than %d bytes", s.limits.FileSize)}
	}
	hollow, err := holes(f, &before)
	if err != nil {
		return file{}, err
	}
	found := s.fileOf(&before)
	found.hollow = hollow
	if found.oid, err = s.store(ctx, f, path, before.Size, dir); err != nil {
		return file{}, err
	}
	if err := unix.Fstat(int(f.Fd()), &after); err != nil ||
		before.Size != after.Size || before.Mtim != after.Mtim || before.Ctim != after.Ctim {
		found.ino = 0
	}
	return found, nil
}

// fileOf takes the stat fields; one that may still change unnoticed is marked.
func (s *scan) fileOf(st *unix.Stat_t) file {
	f := file{mode: modeFile, size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), ino: st.Ino}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		f.mode = modeLink
	case st.Mode&unix.S_IXUSR != 0:
		f.mode = modeExecutable
	}
	if f.ctime >= s.start-int64(racyWindow) {
		f.ino = 0
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
			return "", errStays{why: printable(err.Error())}
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
	h := newHash(s.format)
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	oid := string(h.Sum(nil))
	if s.old.files[path].oid == oid {
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
	h := newHash(s.format)
	fmt.Fprintf(h, "blob %d\x00", size)
	if _, err := io.Copy(h, io.NewSectionReader(spool, 0, size)); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot copy %q", path)
	}
	oid := string(h.Sum(nil))
	if s.old.files[path].oid == oid {
		return oid, nil
	}
	return oid, s.take(size, io.NewSectionReader(spool, 0, size))
}

// take emits what is new, as long as the commit has room for it. What it has no
// room for comes with the next one.
func (s *scan) take(size int64, content io.Reader) error {
	if size > s.limits.Commit-s.taken {
		return errStays{why: fmt.Sprintf("the files of one commit are larger than %d bytes together; the next commit takes it", s.limits.Commit)}
	}
	s.taken += size
	return s.emit(size, content)
}

// symlink hashes the target of one link. Reading through the directory's
// descriptor, nothing is followed.
func (s *scan) symlink(d *os.File, name, path string, st *unix.Stat_t) (file, error) {
	target := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(int(d.Fd()), name, target)
	if err != nil {
		return file{}, unreadable(err)
	}
	found := s.fileOf(st)
	found.oid, err = s.storeBytes(path, target[:n])
	return found, err
}

// unreadable sorts errors of reading a sandbox's file: what the file itself
// refuses or what vanished meanwhile is a note, anything else ends the import.
func unreadable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EAGAIN):
		return errStays{why: "it cannot be read"}
	case errors.Is(err, unix.ENAMETOOLONG):
		return errStays{why: "its path is too long"}
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO),
		errors.Is(err, unix.EXDEV), errors.Is(err, unix.EINVAL):
		return errStays{"it changes while it is read", true}
	}
	var f *fault.Error
	var stays errStays
	if errors.As(err, &f) || errors.As(err, &stays) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "cannot read a file of the sandbox")
}

// readLimited reads everything; more than limit is refused.
func readLimited(r io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = errStays{"it grows while it is read", true}
	}
	return content, err
}

// startWriteback asks the kernel to begin writing a file, without waiting. On
// ext4 that assigns its blocks, so that the journal cannot know the branch
// before it knows the objects (data=ordered): after a power loss the last
// seconds may be missing, but nothing points at an empty file.
func startWriteback(path string) {
	f, err := os.Open(path)
	if err != nil {
		return // already packed elsewhere by the user's own git
	}
	defer f.Close()
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) // a hint
}
