package outpost

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// ErrDamaged says that a tree is not the one that was sent.
var ErrDamaged = fault.New(fault.Unavailable, "the files were damaged on their way")

// ReadTree makes a tree below dir, which is empty, and gives it to an owner; ids
// below zero are those of this process. It fails with [ErrDamaged] if the sum
// differs, and then its result must not be used.
func ReadTree(ctx context.Context, r io.Reader, dir string, owner func(path string) (uid, gid int)) error {
	return ReadTreeOn(ctx, r, dir, owner, nil)
}

// ReadTreeOn is ReadTree for a tree with files that another layer has (Part.Same).
// same puts the one at a path there, which is local, at a name below dir.
func ReadTreeOn(ctx context.Context, r io.Reader, dir string, owner func(path string) (uid, gid int), same func(path, name string) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot open the directory for files")
	}
	t := &treeReader{ctx: ctx, sum: sha256.New(), root: root, owner: owner, same: same}
	t.r = &summed{r: bufio.NewReaderSize(r, 128<<10), sum: t.sum}
	err = t.all()
	var fields *fault.Error
	if err != nil && !errors.As(err, &fields) {
		err = fault.Wrap(fault.Unavailable, err, "cannot write the files")
	}
	return errors.Join(err, root.Close())
}

// summed adds up the bytes read.
type summed struct {
	r   *bufio.Reader
	sum hash.Hash
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	return n, err
}

func (s *summed) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err == nil {
		s.sum.Write([]byte{b})
	}
	return b, err
}

// treeReader is one ReadTree under way.
type treeReader struct {
	ctx   context.Context
	sum   hash.Hash
	r     *summed
	root  *os.Root
	owner func(path string) (uid, gid int)
	same  func(path, name string) error // nil: there is no other layer
	dirs  []madeDir
}

// madeDir is finished when all its content is there.
type madeDir struct {
	path  string
	mode  fs.FileMode
	mtime time.Time
}

func (t *treeReader) all() error {
	magic := make([]byte, len(treeMagic))
	if _, err := io.ReadFull(t.r, magic); err != nil {
		return err
	}
	if string(magic) != treeMagic {
		return fault.New(fault.Unsupported, "cannot take files of this version")
	}
	for {
		kind, err := t.r.ReadByte()
		if err != nil {
			return err
		}
		if kind == treeEnd {
			break
		}
		if err := t.entry(kind); err != nil {
			return err
		}
	}
	want, got := t.sum.Sum(nil), make([]byte, sha256.Size)
	if _, err := io.ReadFull(t.r.r, got); err != nil {
		return err
	}
	if !bytes.Equal(want, got) {
		return ErrDamaged
	}
	for _, d := range slices.Backward(t.dirs) {
		if err := errors.Join(t.root.Chmod(d.path, d.mode), t.root.Chtimes(d.path, d.mtime, d.mtime)); err != nil {
			return err
		}
	}
	return nil
}

func (t *treeReader) entry(kind byte) error {
	if err := t.ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, err, "canceled")
	}
	name, err := t.text()
	if err != nil {
		return err
	}
	if !filepath.IsLocal(name) || path.Clean(name) != name {
		return ErrDamaged
	}
	if kind == treeWhiteout {
		return t.whiteout(name)
	}
	bits, err := binary.ReadUvarint(t.r)
	if err != nil {
		return err
	}
	nanoseconds, err := binary.ReadVarint(t.r)
	if err != nil {
		return err
	}
	mode, mtime := fs.FileMode(bits)&modes, time.Unix(0, nanoseconds)
	switch kind {
	case treeDirectory:
		err = t.directory(name, mode, mtime)
	case treeFile:
		err = t.file(name, mode, mtime)
	case treeLink:
		err = t.link(name)
	case treeSame:
		err = t.again(name)
	default:
		err = ErrDamaged
	}
	return err
}

func (t *treeReader) give(name string) error {
	if uid, gid := t.owner(name); uid >= 0 {
		return t.root.Lchown(name, uid, gid)
	}
	return nil
}

func (t *treeReader) directory(name string, mode fs.FileMode, mtime time.Time) error {
	hides, err := t.r.ReadByte()
	if err != nil {
		return err
	}
	if err := errors.Join(t.root.Mkdir(name, 0o700), t.give(name)); err != nil {
		return err
	}
	t.dirs = append(t.dirs, madeDir{name, mode, mtime})
	if hides == 0 {
		return nil
	}
	dir, err := t.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(makeOpaque(dir), dir.Close())
}

func (t *treeReader) file(name string, mode fs.FileMode, mtime time.Time) error {
	size, err := binary.ReadUvarint(t.r)
	if err != nil {
		return err
	}
	if size > math.MaxInt64 {
		return ErrDamaged
	}
	f, err := t.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, t.r, int64(size))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return errors.Join(t.give(name), t.root.Chmod(name, mode), t.root.Chtimes(name, mtime, mtime))
}

func (t *treeReader) link(name string) error {
	target, err := t.text()
	if err != nil {
		return err
	}
	return errors.Join(t.root.Symlink(target, name), t.give(name))
}

// again puts a file of another layer here too, with its owner, mode and time.
func (t *treeReader) again(name string) error {
	from, err := t.text()
	if err != nil {
		return err
	}
	if t.same == nil || !filepath.IsLocal(from) || path.Clean(from) != from {
		return ErrDamaged
	}
	return t.same(from, name)
}

func (t *treeReader) whiteout(name string) error {
	dir, err := t.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(makeWhiteout(dir, path.Base(name)), dir.Close())
}

func (t *treeReader) text() (string, error) {
	n, err := binary.ReadUvarint(t.r)
	if err != nil {
		return "", err
	}
	if n > maxPath {
		return "", ErrDamaged
	}
	text := make([]byte, n)
	_, err = io.ReadFull(t.r, text)
	return string(text), err
}
