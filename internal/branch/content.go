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
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// regular hashes one regular file and passes it on if it is new. holes decides
// whether its holes can be taken.
func (s *scan) regular(ctx context.Context, open func() (workspace.File, error), path string, dir *directory, holes func(workspace.File) (hollow int64, err error)) (layer.File, error) {
	f, err := open()
	if err != nil {
		return layer.File{}, err
	}
	defer f.Close()
	before := f.Entry()
	if before.Size > s.limits.FileSize {
		return layer.File{}, workspace.Stays{Why: fmt.Sprintf("it is larger than %d bytes", s.limits.FileSize)}
	}
	hollow, err := holes(f)
	if err != nil {
		return layer.File{}, err
	}
	found := s.fileOf(before)
	found.Hollow = hollow
	if found.Oid, err = s.store(ctx, f, path, before.Size, dir); err != nil {
		return layer.File{}, err
	}
	return s.stillSame(found, f), nil
}

// stillSame marks a file that has changed since it was opened.
func (s *scan) stillSame(found layer.File, f workspace.File) layer.File {
	before := f.Entry()
	if after, err := f.Again(); err != nil || before.Size != after.Size || before.Mtime != after.Mtime || before.Ctime != after.Ctime {
		found.Ino = 0
	}
	return found
}

// converts reports whether the content of a file may be stored in another form.
func (s *scan) converts(dir *directory, path string) bool {
	return (s.convert || dir.hasAttributes) && attribute.Convert(dir.attributes.Lookup(path), s.settings)
}

// fileOf takes the stat fields; it marks a file that may still change unnoticed.
func (s *scan) fileOf(entry workspace.Entry) layer.File {
	f := layer.File{Mode: git.ModeFile, Size: entry.Size, Mtime: entry.Mtime, Ctime: entry.Ctime, Ino: entry.Ino}
	switch {
	case entry.Kind == workspace.Link:
		f.Mode = git.ModeLink
	case entry.Executable:
		f.Mode = git.ModeExecutable
	}
	if f.Ctime >= s.start-int64(git.RacyWindow) {
		f.Ino = 0
	}
	return f
}

// store converts, hashes and emits the content of f and returns its raw oid.
func (s *scan) store(ctx context.Context, f io.Reader, path string, size int64, dir *directory) (string, error) {
	converts := s.converts(dir, path)
	// No more than was judged: the file may grow while it is read, even by holes.
	judged := io.LimitReader(contextReader{ctx, f}, size)
	if size > inMemory && (!converts || size > convertible) {
		return s.storeLarge(judged, path)
	}
	content, err := whole(judged)
	if err != nil {
		return "", err
	}
	if converts {
		a := dir.attributes.Lookup(path)
		converted, err := attribute.ToGit(content, a, s.settings, func() bool { return s.storedCRLF(path) })
		if err != nil {
			return "", workspace.Stays{Why: git.Printable(err.Error())}
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

// whole reads what was judged of a file.
func whole(judged io.Reader) ([]byte, error) {
	content, err := io.ReadAll(judged)
	if err != nil {
		return nil, unreadable(err)
	}
	return content, nil
}

func (s *scan) storeBytes(path string, content []byte) (string, error) {
	oid := s.hash(content)
	if s.old.files[path].Oid == oid {
		return oid, nil
	}
	return oid, s.take(int64(len(content)), bytes.NewReader(content))
}

// storeLarge takes a private copy first: the bytes announced, hashed and sent
// must be the same, and the file may change under us.
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

// take emits new content, as long as the commit has room for it. The rest comes
// with the next one.
func (s *scan) take(size int64, content io.Reader) error {
	if size > s.limits.Commit-s.taken {
		return workspace.Stays{Why: fmt.Sprintf("the files of one commit are larger than %d bytes together; the next commit takes it", s.limits.Commit)}
	}
	s.taken += size
	return s.emit(size, content)
}

// symlink hashes the target of one link.
func (s *scan) symlink(d *directory, name, path string, entry workspace.Entry) (layer.File, error) {
	target, err := d.written.Link(name)
	if err != nil {
		return layer.File{}, err
	}
	found := s.fileOf(entry)
	found.Oid, err = s.storeBytes(path, target)
	return found, err
}

// unreadable leaves errors that explain themselves: all that reading a
// sandbox's file can fail with.
func unreadable(err error) error {
	var f *fault.Error
	var stays workspace.Stays
	if errors.As(err, &f) || errors.As(err, &stays) {
		return err
	}
	return fault.Wrap(fault.Unavailable, err, "cannot read a file of the sandbox")
}
