package feed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// A difference makes a listing from an earlier one that both ends have: its
// magic, then parts of the earlier listing and new bytes, in order, and at the end
// the length of the whole. What it makes is read like any listing: a difference is
// a saving, and no reader trusts it.
const (
	differenceMagic = "litterbox changes since 1\n"

	opKeep = 'k' // then: an offset in the earlier listing, and a number of bytes
	opTake = 't' // then: a number of bytes, and the bytes
)

// MaxKept bounds a listing that is kept for the next difference, in bytes. A
// larger one is sent whole each time.
const MaxKept = 32 << 20

// A reader that keeps listings takes larger files with them: what is in a difference is
// what the next commit takes.
const (
	maxInlineKept  = 128 << 10
	mostInlineKept = 4 << 20
)

// WriteKept is WriteBut, or Write without rules, for a reader that keeps listings.
// before is the listing that it has; it may be nil. Small files that have changed
// since come with their content.
func WriteKept(ctx context.Context, w io.Writer, changes workspace.Changes, rules *workspace.Rules, before []byte) error {
	l := newLister(ctx, w, changes)
	l.most, l.room = maxInlineKept, mostInlineKept
	if began, ok := beganAt(before); ok {
		l.fresh = min(l.fresh, began-inlineWithin)
	}
	var but *pruning
	if rules != nil {
		but = newPruning(*rules)
	}
	return l.whole(changes, but)
}

func beganAt(listing []byte) (int64, bool) {
	rest, ok := bytes.CutPrefix(listing, []byte(magic))
	if !ok {
		return 0, false
	}
	began, n := binary.Varint(rest)
	return began, n > 0
}

// WriteDifference writes what makes now from before, both well-formed listings.
func WriteDifference(w io.Writer, before, now []byte) error {
	out := encoder{bufio.NewWriterSize(w, 64<<10)}
	_, _ = out.w.WriteString(differenceMagic) // Flush says what went wrong
	var (
		seen        map[uint64]int // offsets of files in before; made when something differs
		seed        = maphash.MakeSeed()
		was, is     records
		from, until = 0, 0 // the part of before under way
		taken       []byte // the new bytes under way
	)
	keep := func() {
		if until > from {
			out.byte(opKeep)
			out.number(uint64(from))
			out.number(uint64(until - from))
		}
	}
	take := func() {
		if len(taken) > 0 {
			out.byte(opTake)
			out.string(string(taken))
			taken = nil
		}
	}
	for is.at < len(now) {
		start := is.at
		file := is.next(now)
		record := now[start:is.at]
		if !bytes.HasPrefix(before[until:], record) {
			at, ok := near(before, until, record)
			if !ok && file {
				if seen == nil {
					seen = map[uint64]int{}
					for was.at < len(before) {
						start := was.at
						if was.next(before) {
							seen[maphash.Bytes(seed, before[start:was.at])] = start
						}
					}
				}
				at, ok = seen[maphash.Bytes(seed, record)]
				ok = ok && bytes.HasPrefix(before[at:], record)
			}
			if !ok {
				if len(taken) == 0 {
					keep()
					from = until
				}
				taken = now[start-len(taken) : is.at]
				continue
			}
			if len(taken) == 0 {
				keep()
			}
			from, until = at, at
		}
		take()
		until += len(record)
	}
	if len(taken) == 0 {
		keep()
	}
	take()
	out.byte(opEnd)
	out.number(uint64(len(now)))
	return out.w.Flush()
}

// near looks for a record among the next ones of an earlier listing: that is where it
// is after one that has changed or gone.
func near(before []byte, at int, record []byte) (int, bool) {
	r := records{at: at, began: at > 0}
	for range 8 {
		if r.at >= len(before) {
			return 0, false
		}
		if bytes.HasPrefix(before[r.at:], record) {
			return r.at, true
		}
		r.next(before)
	}
	return 0, false
}

// ReadDifference makes the listing from the one before.
func ReadDifference(r io.Reader, before []byte) ([]byte, error) {
	d := decoder{r: bufio.NewReaderSize(r, 64<<10)}
	d.magic(differenceMagic)
	var now []byte
	for d.err == nil {
		switch op := d.byte(); {
		case d.err != nil:
		case op == opKeep:
			from := d.number(uint64(len(before)))
			n := d.number(uint64(len(before)) - from)
			if uint64(len(now))+n > MaxKept {
				d.fail(malformed("it is too large for a difference"))
			}
			if d.err == nil {
				now = append(now, before[from:from+n]...)
			}
		case op == opTake:
			n := d.number(uint64(MaxKept - len(now)))
			var taken bytes.Buffer // as it comes: a mere length takes no memory
			if d.err == nil {
				if _, err := io.CopyN(&taken, d.r, int64(n)); err != nil {
					d.fail(err)
				}
			}
			now = append(now, taken.Bytes()...)
		case op == opEnd:
			if n := d.number(MaxKept); d.err == nil && n != uint64(len(now)) {
				d.fail(malformed("a difference does not make what it says"))
			}
			return now, d.err
		default:
			d.fail(malformed("a difference has a part of no known kind"))
		}
	}
	return nil, d.err
}

// records goes through the entries of a listing. One that is not well-formed ends
// with whatever is left of it as the last record.
type records struct {
	at    int
	began bool
}

// next moves behind the next record, and reports whether it is a file's: those have
// a number of their own.
func (r *records) next(listing []byte) (file bool) {
	s := skimmer{listing[r.at:], 0}
	if !r.began {
		r.began = true
		s.skip(uint64(len(magic)))
		s.number()
		r.at += min(s.at, len(listing)-r.at)
		return false
	}
	op := s.byte()
	if op != opEnd {
		s.skip(s.number())
	}
	switch op {
	case opRegular, opInline, opLink:
		file = true
		for range 6 {
			s.number()
		}
		if op == opInline {
			s.number()
		}
		if op != opRegular {
			s.skip(s.number())
		}
	case opDirectory, opUnread:
		s.number()
	case opEnd, opPruned, opWhiteout, opSpecial:
	default: // the number of entries, after the last directory's end
		s.at = len(s.data)
	}
	r.at += min(s.at, len(listing)-r.at)
	return file
}

// skimmer moves over fields without reading them.
type skimmer struct {
	data []byte
	at   int
}

func (s *skimmer) byte() byte {
	if s.at >= len(s.data) {
		return 0
	}
	s.at++
	return s.data[s.at-1]
}

func (s *skimmer) number() uint64 {
	if s.at >= len(s.data) {
		return 0
	}
	n, size := binary.Uvarint(s.data[s.at:]) // a signed one is as long
	if size <= 0 {
		s.at = len(s.data)
		return 0
	}
	s.at += size
	return n
}

func (s *skimmer) skip(n uint64) {
	s.at += int(min(n, uint64(len(s.data)-s.at)))
}

// Kept is a writer of a listing that is kept: it holds at most MaxKept bytes, and
// then calls Over with what it has and writes on to the result.
type Kept struct {
	Over func(so []byte) (io.Writer, error)

	held []byte
	on   io.Writer
}

// Write implements io.Writer.
func (k *Kept) Write(p []byte) (int, error) {
	if k.on == nil && len(k.held)+len(p) > MaxKept {
		on, err := k.Over(k.held)
		if err != nil {
			return 0, fault.Wrap("", err, "cannot send the listing")
		}
		k.held, k.on = nil, on
	}
	if k.on != nil {
		return k.on.Write(p)
	}
	k.held = append(k.held, p...)
	return len(p), nil
}

// Whole returns the listing, if it has not become too large.
func (k *Kept) Whole() ([]byte, bool) { return k.held, k.on == nil }
