package feed

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// A listing is: its magic, its beginning time, then the entries of the top
// directory and, at the end, the number of entries. An entry is a byte for its
// kind, its name and its fields; a directory's entries follow it. Numbers are
// varints (encoding/binary), strings a length and bytes.
const (
	magic        = "litterbox changes 1\n"
	belowMagic   = "litterbox changes below 1\n" // then: properties of the directory, its entries, their number
	contentMagic = "litterbox content 1\n"
)

// The kinds of entries.
const (
	opEnd       = 'e' // of a directory
	opRegular   = 'f' // then: executable, size, held, mtime, ctime, inode
	opInline    = 'i' // a regular file: the same, its holes, and its content
	opLink      = 'l' // then: the same, and the target
	opDirectory = 'd' // then: its properties
	opPruned    = 'p' // a directory that git ignores; it is listed when it is asked for
	opUnread    = 'u' // a directory, or a name of any kind, that cannot be read; then: why
	opWhiteout  = 'w'
	opSpecial   = 's'
)

// Properties of a directory.
const (
	opaque     = 1
	repository = 2
)

// Why something cannot be read. The host supplies the words.
const (
	whyForbidden = iota + 1
	whyLong
	whyChanging
)

func reason(code uint64) (workspace.Stays, bool) {
	switch code {
	case whyForbidden:
		return workspace.Stays{Why: "it cannot be read"}, true
	case whyLong:
		return workspace.Stays{Why: "its path is too long"}, true
	case whyChanging:
		return workspace.Changing, true
	}
	return workspace.Stays{}, false
}

func codeOf(why workspace.Stays) uint64 {
	for code := uint64(whyForbidden); code <= whyChanging; code++ {
		if known, _ := reason(code); known == why {
			return code
		}
	}
	return whyForbidden
}

// Bounds of what one entry may say, in bytes (limits.h: NAME_MAX, PATH_MAX).
const (
	maxName = 255
	maxPath = 4096
)

// Small files that have just changed travel in the listing: the next commit
// takes them, and asking for each would cost a round trip.
const (
	maxInline    = 16 << 10 // bytes of one file
	mostInline   = 1 << 20  // of a whole listing
	inlineWithin = int64(time.Minute)
)

// malformed returns the error that refuses a listing. A stranger made it: its
// names are not repeated.
func malformed(what string) error {
	return fault.New(fault.Denied, "cannot take the listing of the sandbox's files: %s", what)
}

// decoder takes fields off a stream; the first defect sticks.
type decoder struct {
	r   *bufio.Reader
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		d.err = err
	}
}

func (d *decoder) byte() byte {
	if d.err != nil {
		return 0
	}
	b, err := d.r.ReadByte()
	if err != nil {
		d.fail(err)
	}
	return b
}

// number reads a number of at most most.
func (d *decoder) number(most uint64) uint64 {
	if d.err != nil {
		return 0
	}
	n, err := binary.ReadUvarint(d.r)
	if err != nil {
		d.fail(err)
		return 0
	}
	if n > most {
		d.fail(malformed("a number in it is too large"))
		return 0
	}
	return n
}

func (d *decoder) signed() int64 {
	if d.err != nil {
		return 0
	}
	n, err := binary.ReadVarint(d.r)
	if err != nil {
		d.fail(err)
	}
	return n
}

func (d *decoder) string(most uint64) string {
	n := d.number(most)
	if d.err != nil {
		return ""
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(d.r, text); err != nil {
		d.fail(err)
		return ""
	}
	return string(text)
}

func (d *decoder) magic(want string) {
	if d.err != nil {
		return
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(d.r, got); err != nil {
		d.fail(err)
	} else if string(got) != want {
		d.fail(malformed("it is of another version"))
	}
}

func (d *decoder) entry(kind workspace.Kind) workspace.Entry {
	return workspace.Entry{
		Kind: kind, Executable: d.number(1) == 1, Size: int64(d.number(math.MaxInt64)), Held: int64(d.number(math.MaxInt64)),
		Mtime: d.signed(), Ctime: d.signed(), Ino: d.number(math.MaxUint64),
	}
}

// encoder puts fields onto a stream; errors stick in the writer.
type encoder struct{ w *bufio.Writer }

func (e encoder) byte(b byte) { _ = e.w.WriteByte(b) } // Flush says what went wrong

func (e encoder) number(n uint64) { _, _ = e.w.Write(binary.AppendUvarint(nil, n)) }

func (e encoder) signed(n int64) { _, _ = e.w.Write(binary.AppendVarint(nil, n)) }

func (e encoder) string(s string) {
	e.number(uint64(len(s)))
	_, _ = e.w.WriteString(s)
}

func (e encoder) entry(entry workspace.Entry) {
	executable := uint64(0)
	if entry.Executable {
		executable = 1
	}
	e.number(executable)
	e.number(uint64(max(0, entry.Size)))
	e.number(uint64(max(0, entry.Held)))
	e.signed(entry.Mtime)
	e.signed(entry.Ctime)
	e.number(entry.Ino)
}
