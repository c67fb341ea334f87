package git

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// NewHash is the hash that names objects.
func NewHash(format string) hash.Hash {
	if format == "sha256" {
		return sha256.New()
	}
	return sha1.New()
}

// The layout of one entry of an index of version 2 or 3: gitformat-index(5).
const (
	IndexHeader   = 12
	EntryCtime    = 0
	EntryMtime    = 8
	EntryIno      = 20
	EntryMode     = 24
	entryUID      = 28
	entryGID      = 32
	EntrySize     = 36
	EntryOid      = 40
	extendedEntry = 0x4000
	nameMask      = 0x0fff
)

// ErrIndex is an index file that is not what git wrote.
var ErrIndex = errors.New("the index is not of version 2 or 3")

// IndexEntries calls each with the bytes of every entry and its path, which are
// the index's own memory: an entry may be changed up to its object id, its path
// never. It returns the rest after the entries, without the checksum at the end.
func IndexEntries(index []byte, format string, each func(entry []byte, path string) error) (extensions []byte, err error) {
	size := NewHash(format).Size()
	if len(index) < IndexHeader+size || string(index[:4]) != "DIRC" {
		return nil, ErrIndex
	}
	if v := binary.BigEndian.Uint32(index[4:]); v != 2 && v != 3 {
		return nil, ErrIndex
	}
	at := IndexHeader
	for range binary.BigEndian.Uint32(index[8:]) {
		name := EntryOid + size + 2
		if len(index) < at+name+2+size {
			return nil, ErrIndex
		}
		entry := index[at:]
		if binary.BigEndian.Uint16(entry[EntryOid+size:])&extendedEntry != 0 {
			name += 2
		}
		length := bytes.IndexByte(entry[name:], 0)
		whole := (name + length + 8) &^ 7 // one to eight NULs, to a multiple of eight
		if length < 0 || len(index) < at+whole+size {
			return nil, ErrIndex
		}
		// Not a copy: the paths of a large tree are megabytes.
		path := unsafe.String(unsafe.SliceData(entry[name:]), length)
		if err := each(entry[:whole], path); err != nil {
			return nil, err
		}
		at += whole
	}
	return index[at : len(index)-size], nil
}

// WriteIndex replaces the index at path, whose body is without a checksum. It
// is a new file: git made the old one with a mode that follows the umask.
func WriteIndex(path, format string, body []byte, o Owner) error {
	fresh := path + ".new"
	if err := WriteSummed(fresh, format, body); err != nil {
		return err
	}
	if o.Chown {
		if err := os.Chown(fresh, o.UID, o.GID); err != nil {
			return err
		}
	}
	return os.Rename(fresh, path)
}

// WriteSummed writes a file that ends with a checksum of its body, readable by
// all. Body and checksum of a large index take equally long, so both are done at
// the same time.
func WriteSummed(path, format string, body []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := make(chan []byte, 1)
	go func() {
		h := NewHash(format)
		h.Write(body)
		sum <- h.Sum(nil)
	}()
	_, err = f.Write(body)
	last := <-sum
	if err == nil {
		_, err = f.Write(last)
	}
	return errors.Join(err, f.Chmod(0o644), f.Close())
}

// FinishIndex makes the index that a checkout left fit for use inside a
// sandbox: it gets the owner's ids, and no entry stays "racily clean". git
// rereads every file whose time is not older than the index, in whole seconds
// (Documentation/technical/racy-git), which would make the first `git status`
// slow; such files are dated back by a second or two. With o.Chown the files
// get their owner on the way.
func FinishIndex(ctx context.Context, files, path, format string, o Owner) error {
	index, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now := uint32(time.Now().Unix())
	var entries []finishing
	_, err = IndexEntries(index, format, func(entry []byte, name string) error {
		binary.BigEndian.PutUint32(entry[entryUID:], uint32(o.UID))
		binary.BigEndian.PutUint32(entry[entryGID:], uint32(o.GID))
		young := binary.BigEndian.Uint32(entry[EntryMtime:]) >= now
		if young {
			binary.BigEndian.PutUint32(entry[EntryMtime:], now-2)
		}
		if young || o.Chown {
			entries = append(entries, finishing{entry, name, young})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := finishAll(ctx, files, entries, o); err != nil {
		return err
	}
	return WriteIndex(path, format, index[:len(index)-NewHash(format).Size()], o)
}

// finishing is a file that a checkout wrote.
type finishing struct {
	entry []byte // of the index, as it should be
	name  string
	young bool // its time must become the entry's
}

// finishWorkers share the system calls for thousands of files.
const finishWorkers = 4

func finishAll(ctx context.Context, files string, entries []finishing, o Owner) error {
	group, ctx := errgroup.WithContext(ctx)
	for part := range slices.Chunk(entries, len(entries)/finishWorkers+1) {
		group.Go(func() error {
			for n, f := range part {
				if n%512 == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				if err := f.finish(filepath.Join(files, f.name), o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (f finishing) finish(path string, o Owner) error {
	if f.young {
		old := unix.Timespec{
			Sec:  int64(binary.BigEndian.Uint32(f.entry[EntryMtime:])),
			Nsec: int64(binary.BigEndian.Uint32(f.entry[EntryMtime+4:])),
		}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{old, old}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return o.Give(path)
}

// VerifyTree compares the sizes and times of a cached tree with its index.
func VerifyTree(format string) func(dir string) bool {
	return func(dir string) bool {
		return VerifyFiles(format, filepath.Join(dir, "index"), filepath.Join(dir, "files"))
	}
}

func VerifyFiles(format, indexFile, files string) bool {
	index, err := os.ReadFile(indexFile)
	if err != nil {
		return false
	}
	h := NewHash(format)
	if len(index) < h.Size() {
		return false
	}
	body := len(index) - h.Size()
	h.Write(index[:body])
	if !bytes.Equal(h.Sum(nil), index[body:]) {
		return false
	}
	_, err = IndexEntries(index, format, func(entry []byte, name string) error {
		info, err := os.Lstat(filepath.Join(files, name))
		if err != nil {
			return err
		}
		if info.IsDir() { // a submodule's empty directory
			return nil
		}
		if uint32(info.Size()) != binary.BigEndian.Uint32(entry[EntrySize:]) ||
			uint32(info.ModTime().Unix()) != binary.BigEndian.Uint32(entry[EntryMtime:]) {
			return ErrIndex
		}
		return nil
	})
	return err == nil
}

// RacyWindow: a file that changed this shortly before a scan may change
// again without its times showing it (the kernel's clock ticks every
// 1 to 10 ms), so it is hashed again the next time.
const RacyWindow = 20 * time.Millisecond
