package inject

import (
	"encoding/binary"

	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

// mostHeld bounds the bytes that wait for the end of a sequence, with the
// frames in between.
const mostHeld = 256 << 10

// The first two bytes of a frame (RFC 6455, section 5.2).
const (
	bitFinal    = 0x80
	bitsUnknown = 0x70 // reserved for extensions
	opControl   = 0x08 // all from here on
	opMost      = 0x0a
	bitMasked   = 0x80
)

// frames replaces in one direction of a WebSocket, without a change of length. A
// sequence may lie in several frames of one message. None lies in two messages:
// the end of a message is passed on at once, because the receiver may answer it.
type frames struct {
	tables []*replace.Table
	marks  *replace.Table // what to look for; may be nil
	finder *replace.Finder

	raw           []byte // what is not passed on yet
	data, control payload
	head          []byte // an unfinished header
	left          uint64 // of the frame's payload
	key           [4]byte
	masked        int // bytes of the frame that were unmasked
	first         byte
}

// payload is the content of frames, unmasked, and its positions in raw.
type payload struct {
	text, mask []byte
	at         []int
	found      int // bytes of text that were looked at for marks
}

func newFrames(tables []*replace.Table, marks *replace.Table) *frames {
	f := &frames{tables: tables, marks: marks}
	if marks != nil {
		f.finder = marks.Finder()
	}
	return f
}

// next takes the next piece and returns what may be passed on, with the IDs of
// the marks in it.
func (f *frames) next(piece []byte) (ready []byte, ids []int, err error) {
	for len(piece) > 0 {
		if f.left == 0 {
			f.head = append(f.head, piece[0])
			f.raw = append(f.raw, piece[0])
			piece = piece[1:]
			complete, err := f.header()
			if err != nil {
				return nil, nil, err
			}
			if complete && f.left == 0 {
				ids = append(ids, f.frameEnd()...)
			}
			continue
		}
		n := int(min(f.left, uint64(len(piece))))
		f.take(piece[:n])
		piece, f.left = piece[n:], f.left-uint64(n)
		if f.left == 0 {
			ids = append(ids, f.frameEnd()...)
		}
	}
	free, found := f.look(&f.data, false)
	ids = append(ids, found...)
	if len(f.control.at) > 0 { // unfinished
		free = min(free, f.control.at[0])
	}
	ready = f.raw[:free:free]
	f.raw = append([]byte(nil), f.raw[free:]...)
	for _, p := range []*payload{&f.data, &f.control} {
		for n := range p.at {
			p.at[n] -= free
		}
	}
	if len(f.raw) > mostHeld {
		return nil, nil, errFrames
	}
	return ready, ids, nil
}

// header reads the bytes of a header that have come, and reports whether it is
// complete.
func (f *frames) header() (bool, error) {
	if len(f.head) < 2 {
		return false, nil
	}
	f.first = f.head[0]
	op := f.first & 0x0f
	if f.first&bitsUnknown != 0 || op > 2 && op < opControl || op > opMost {
		return false, errFrames
	}
	length, need := uint64(f.head[1]&^bitMasked), 2
	switch length {
	case 126:
		need += 2
	case 127:
		need += 8
	}
	key := need
	if f.head[1]&bitMasked != 0 {
		need += 4
	}
	if len(f.head) < need {
		return false, nil
	}
	switch length {
	case 126:
		length = uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		length = binary.BigEndian.Uint64(f.head[2:])
	}
	if op >= opControl && (length > 125 || f.first&bitFinal == 0) || length>>63 != 0 {
		return false, errFrames
	}
	f.key = [4]byte{}
	copy(f.key[:], f.head[key:need])
	f.left, f.masked, f.head = length, 0, f.head[:0]
	return true, nil
}

// take adds a part of the frame's payload.
func (f *frames) take(piece []byte) {
	p := &f.data
	if f.first&opControl != 0 {
		p = &f.control
	}
	for _, c := range piece {
		mask := f.key[f.masked%4]
		f.masked++
		p.at = append(p.at, len(f.raw))
		p.text, p.mask = append(p.text, c^mask), append(p.mask, mask)
		f.raw = append(f.raw, c)
	}
}

// frameEnd looks at what is complete now.
func (f *frames) frameEnd() (ids []int) {
	switch {
	case f.first&opControl != 0:
		_, ids = f.look(&f.control, true)
	case f.first&bitFinal != 0:
		_, ids = f.look(&f.data, true)
	}
	return ids
}

// look replaces in a payload, drops the finished part, and returns how far raw
// may be passed on.
func (f *frames) look(p *payload, end bool) (free int, ids []int) {
	if f.finder != nil {
		finder := f.finder
		if p == &f.control {
			finder = f.marks.Finder()
		}
		for id := range finder.Next(p.text[p.found:]) {
			ids = append(ids, id)
		}
	}
	done := len(p.text)
	for _, table := range f.tables {
		done = min(done, table.Patch(p.text, end))
	}
	for n, at := range p.at {
		f.raw[at] = p.text[n] ^ p.mask[n]
	}
	free = len(f.raw)
	if done < len(p.text) {
		free = p.at[done]
	}
	p.text, p.mask, p.at = p.text[done:], p.mask[done:], p.at[done:]
	p.found = len(p.text)
	return free, ids
}
