package engine

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// room watches the disk while files of a sandbox are written to the host: what
// a sandbox calls a file of a terabyte may be a hole that costs it nothing, and
// its directories may hold more files than the disk has inodes.
type room struct {
	dir       *os.File // on the file system that is written
	entries   int
	unchecked int64 // bytes since the last look
}

const (
	reserve      = 256 << 20 // bytes that stay free
	reserveFiles = 4096      // inodes that do
	lookEvery    = 16 << 20  // bytes
	lookEntries  = 512
	longestName  = 4096 // PATH_MAX; a longer one only costs time
)

func newRoom(root *os.Root) (*room, error) {
	dir, err := root.Open(".")
	return &room{dir: dir}, err
}

// take makes sure that an entry fits before anything of it is written.
func (r *room) take(header *tar.Header) error {
	if len(header.Name) > longestName || len(header.Linkname) > longestName {
		return fault.New(fault.Invalid, "cannot copy a file with a path of %d bytes", max(len(header.Name), len(header.Linkname)))
	}
	r.entries++
	r.unchecked += header.Size
	if r.unchecked < lookEvery && r.entries%lookEntries != 1 {
		return nil
	}
	r.unchecked = 0
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(r.dir.Fd()), &disk); err != nil {
		return err
	}
	if free := int64(disk.Bavail) * int64(disk.Bsize); header.Size > free-reserve {
		return fault.New(fault.Unavailable, "cannot copy %q: it is %d bytes, and the disk has room for %d", header.Name, header.Size, max(free-reserve, 0)).
			WithHint("df -h, and make room")
	}
	if disk.Files > 0 && disk.Ffree < reserveFiles {
		return fault.New(fault.Unavailable, "cannot copy %q: the disk has room for few more files", header.Name).
			WithHint("df -i, and make room")
	}
	return nil
}

// copySparse copies content and leaves holes where it is zero, as cp does.
func copySparse(file *os.File, content io.Reader) error {
	block, zero := make([]byte, 64<<10), make([]byte, 64<<10)
	var size int64
	for {
		n, err := io.ReadFull(content, block)
		size += int64(n)
		switch {
		case n == 0:
		case bytes.Equal(block[:n], zero[:n]):
			if _, err := file.Seek(int64(n), io.SeekCurrent); err != nil {
				return err
			}
		default:
			if _, err := file.Write(block[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			// A tar that ends too early says so itself, with the same error.
			return file.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}
