package branch

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// packLimits bound the unpacked size of the objects of one pack.
type packLimits struct {
	file    int64 // bytes of one file
	total   int64 // bytes of everything
	objects int
}

const (
	maxPackObjects = 4_000_000
	maxTree        = 64 << 20  // bytes of one directory
	maxDelta       = 512 << 20 // bytes; git makes none for larger objects (core.bigFileThreshold)
)

// Kinds of objects in a pack, gitformat-pack(5).
const (
	packCommit = iota + 1
	packTree
	packBlob
	packTag
	_
	packOffsetDelta
	packNamedDelta
)

// checkPack checks a pack before git reads it. Each object declares its
// unpacked size, each delta also that of its result, and git refuses an object
// of another size: the declared sizes bound what git holds. checkPack itself
// holds only some kilobytes of the pack.
func checkPack(pack io.Reader, hashSize int, limits packLimits) error {
	c := packCheck{in: bufio.NewReaderSize(pack, 64<<10), hashSize: hashSize, limits: limits}
	if err := c.run(); err != nil {
		var known *fault.Error
		if errors.As(err, &known) {
			return err
		}
		return fault.Wrap(fault.Denied, err, "the pack is damaged")
	}
	return nil
}

type packCheck struct {
	in       *bufio.Reader
	hashSize int
	limits   packLimits
	total    int64
	inflater io.ReadCloser
}

func (c *packCheck) run() error {
	var header [12]byte
	if _, err := io.ReadFull(c.in, header[:]); err != nil {
		return err
	}
	if version := binary.BigEndian.Uint32(header[4:]); string(header[:4]) != "PACK" || version != 2 && version != 3 {
		return errors.New("it is not a pack")
	}
	count := binary.BigEndian.Uint32(header[8:])
	if int64(count) > int64(c.limits.objects) {
		return tooLarge("there are more than %d objects", c.limits.objects)
	}
	for range count {
		if err := c.object(); err != nil {
			return err
		}
	}
	return nil
}

func tooLarge(format string, args ...any) error { return fault.New(fault.Denied, format, args...) }

func (c *packCheck) object() error {
	kind, size, err := c.header()
	if err != nil {
		return err
	}
	most, what := c.limits.file, "a file"
	switch kind {
	case packBlob:
	case packTree:
		most, what = maxTree, "a directory"
	case packCommit, packTag:
		most, what = git.MaxCommit, "a commit"
	case packOffsetDelta:
		for {
			b, err := c.in.ReadByte()
			if err != nil {
				return io.ErrUnexpectedEOF
			}
			if b < 0x80 {
				break
			}
		}
		most, what = maxDelta, "a delta"
	case packNamedDelta:
		if _, err := c.in.Discard(c.hashSize); err != nil {
			return io.ErrUnexpectedEOF
		}
		most, what = maxDelta, "a delta"
	default:
		return errors.New("it holds an object of an unknown kind")
	}
	if size > uint64(most) {
		return tooLarge("%s is larger than %d bytes", what, most)
	}
	if err := c.add(int64(size)); err != nil {
		return err
	}
	return c.content(int64(size), kind == packOffsetDelta || kind == packNamedDelta)
}

// header reads the kind and the size of an object.
func (c *packCheck) header() (kind int, size uint64, err error) {
	b, err := c.in.ReadByte()
	if err != nil {
		return 0, 0, io.ErrUnexpectedEOF
	}
	kind, size = int(b>>4&7), uint64(b&15)
	for shift := 4; b >= 0x80; shift += 7 {
		if b, err = c.in.ReadByte(); err != nil {
			return 0, 0, io.ErrUnexpectedEOF
		}
		if shift > 56 {
			return 0, 0, errors.New("an object is larger than any can be")
		}
		size |= uint64(b&0x7f) << shift
	}
	return kind, size, nil
}

func (c *packCheck) add(size int64) error {
	if c.total += size; c.total > c.limits.total {
		return tooLarge("everything together is larger than %d bytes", c.limits.total)
	}
	return nil
}

// content inflates data declared to be of that size, to find its end.
func (c *packCheck) content(size int64, delta bool) error {
	var err error
	if c.inflater == nil {
		c.inflater, err = zlib.NewReader(c.in)
	} else {
		err = c.inflater.(zlib.Resetter).Reset(c.in, nil)
	}
	if err != nil {
		return err
	}
	seen := int64(0)
	if delta {
		// It begins with the sizes of the object that it changes and of its result.
		begin := make([]byte, min(size, 2*binary.MaxVarintLen64))
		n, err := io.ReadFull(c.inflater, begin)
		if err != nil {
			return err
		}
		seen = int64(n)
		if err := c.delta(begin); err != nil {
			return err
		}
	}
	// One more byte than declared shows that there is more; at the end zlib
	// has compared its own checksum.
	n, err := io.Copy(io.Discard, io.LimitReader(c.inflater, size-seen+1))
	if err != nil {
		return err
	}
	if seen+n != size {
		return errors.New("an object has another size than it declares")
	}
	return nil
}

// delta judges the size of a delta's result.
func (c *packCheck) delta(begin []byte) error {
	_, n := binary.Uvarint(begin)
	if n <= 0 {
		return errors.New("a delta has no beginning")
	}
	result, n := binary.Uvarint(begin[n:])
	if n <= 0 {
		return errors.New("a delta has no beginning")
	}
	if most := min(c.limits.file, maxDelta); result > uint64(most) {
		return tooLarge("a delta makes a file larger than %d bytes", most)
	}
	return c.add(int64(result))
}
