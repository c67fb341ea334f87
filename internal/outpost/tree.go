package outpost

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// A tree of files as a stream: its magic, its entries, each directory before its
// content, a byte that ends them, and the SHA-256 of everything before. The same
// files are the same bytes, so a transfer that was cut off resumes where it was.
// Numbers are varints, texts a length and bytes.
const treeMagic = "litterbox tree 1\n"

// The kinds of entries. A path follows, and for all but whiteouts a mode and a time.
const (
	treeEnd       = 'e'
	treeDirectory = 'd' // then: 1 if it is opaque
	treeFile      = 'f' // then: size, content
	treeLink      = 'l' // then: target
	treeWhiteout  = 'w'
	treeSame      = 's' // then: the path of the same file in another layer, which the other end has
)

const (
	maxPath = 4096
	modes   = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
)

// Part is a directory, or one program, and its position in a tree. An empty
// name is the whole tree.
type Part struct {
	Name string
	Dir  string
	// Same, when not nil, is called for each regular file and returns the path of
	// the same one in a layer that the other end has, or "". With a path, its
	// content is not sent.
	Same func(fs.FileInfo) string
}

// WriteTree streams parts without their first bytes, which the other end has.
// Nothing may change them meanwhile.
func WriteTree(ctx context.Context, w io.Writer, parts []Part, skip int64) error {
	rest := &skipping{w, skip}
	t := &treeWriter{ctx: ctx, sum: sha256.New()} // same is each part's
	t.out = bufio.NewWriterSize(io.MultiWriter(t.sum, rest), 128<<10)
	_, _ = t.out.WriteString(treeMagic) // Flush reports what went wrong
	for _, part := range parts {
		if err := t.part(part); err != nil {
			return err
		}
	}
	_ = t.out.WriteByte(treeEnd)
	if err := t.out.Flush(); err != nil {
		return err
	}
	_, err := rest.Write(t.sum.Sum(nil))
	return err
}

// skipping drops the first bytes written to it.
type skipping struct {
	w    io.Writer
	skip int64
}

func (s *skipping) Write(p []byte) (int, error) {
	n := int(min(s.skip, int64(len(p))))
	s.skip -= int64(n)
	if n == len(p) {
		return n, nil
	}
	more, err := s.w.Write(p[n:])
	return n + more, err
}

// treeWriter is one WriteTree under way.
type treeWriter struct {
	ctx context.Context
	sum hash.Hash
	out *bufio.Writer

	same func(fs.FileInfo) string
}

func (t *treeWriter) part(part Part) error {
	t.same = part.Same
	if info, err := os.Stat(part.Dir); err == nil && info.Mode().IsRegular() {
		return t.program(part)
	}
	root, err := os.OpenRoot(part.Dir)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read the files for the machine")
	}
	if err = t.directory(root, ".", part.Name); err != nil {
		err = fault.Wrap("", err, "cannot send %q to the machine", part.Dir)
	}
	return errors.Join(err, root.Close())
}

// directory sends a directory and everything below it.
func (t *treeWriter) directory(root *os.Root, at, name string) error {
	if err := t.ctx.Err(); err != nil {
		return fault.Wrap(fault.Canceled, err, "canceled")
	}
	dir, err := root.Open(at)
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	hides, err := isOpaque(dir)
	if err != nil {
		return err
	}
	if name != "" {
		t.begin(treeDirectory, name, info)
		t.number(map[bool]uint64{true: 1}[hides])
	} else if hides {
		return errors.New("its top directory is opaque")
	}
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		if err := t.entry(root, filepath.Join(at, entry.Name()), path.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (t *treeWriter) entry(root *os.Root, at, name string) error {
	info, err := root.Lstat(at)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return t.directory(root, at, name)
	case info.Mode().IsRegular():
		if t.same != nil {
			if path := t.same(info); path != "" {
				t.begin(treeSame, name, info)
				t.text(path)
				return nil
			}
		}
		return t.file(root, at, name)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(at)
		if err != nil {
			return err
		}
		t.begin(treeLink, name, info)
		t.text(target)
		return nil
	case isWhiteout(info):
		_ = t.out.WriteByte(treeWhiteout)
		t.text(name)
		return nil
	}
	return fault.New(fault.Unsupported, "%q is not a file, directory or link", at)
}

// program sends one file, regardless of its own mode and time.
func (t *treeWriter) program(part Part) error {
	f, err := os.Open(part.Dir)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read the program for the machine")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read the program for the machine")
	}
	_ = t.out.WriteByte(treeFile) // Flush reports what went wrong
	t.text(part.Name)
	t.number(0o755)
	_, _ = t.out.Write(binary.AppendVarint(nil, 0))
	t.number(uint64(info.Size()))
	_, err = io.CopyN(t.out, f, info.Size())
	return err
}

func (t *treeWriter) file(root *os.Root, at, name string) error {
	f, err := root.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	t.begin(treeFile, name, info)
	t.number(uint64(info.Size()))
	n, err := io.CopyN(t.out, f, info.Size())
	if errors.Is(err, io.EOF) {
		return fault.New(fault.Conflict, "%q became shorter while it was read: %d of %d bytes", at, n, info.Size())
	}
	return err
}

func (t *treeWriter) begin(kind byte, name string, info fs.FileInfo) {
	_ = t.out.WriteByte(kind) // Flush reports what went wrong
	t.text(name)
	t.number(uint64(info.Mode() & modes))
	_, _ = t.out.Write(binary.AppendVarint(nil, info.ModTime().UnixNano()))
}

func (t *treeWriter) number(n uint64) { _, _ = t.out.Write(binary.AppendUvarint(nil, n)) }

func (t *treeWriter) text(s string) {
	t.number(uint64(len(s)))
	_, _ = t.out.WriteString(s)
}
