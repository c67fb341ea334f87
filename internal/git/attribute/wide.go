package attribute

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// wide is UTF-16 or UTF-32.
type wide struct {
	size int  // bytes of a unit
	big  bool // byte order, if no mark says it
	mark markRule
}

// markRule is git's rule about the byte order mark.
type markRule uint8

const (
	markForbidden markRule = iota // the name gives the order; a mark would be stored as a character
	markRequired
	markOptional // read as if required, but git does not insist
	markWritten  // git only writes this form: iconv, which reads, does not know the name
)

func findWide(form string) (wide, bool) {
	switch form {
	// Little endian is what glibc writes and git calls host order, on every
	// architecture that litterbox runs on.
	case "16":
		return wide{2, false, markRequired}, true
	case "16LE":
		return wide{2, false, markForbidden}, true
	case "16BE":
		return wide{2, true, markForbidden}, true
	case "16LE-BOM":
		return wide{2, false, markOptional}, true
	case "16BE-BOM":
		return wide{2, true, markWritten}, true
	case "32":
		return wide{4, false, markRequired}, true
	case "32LE":
		return wide{4, false, markForbidden}, true
	case "32BE":
		return wide{4, true, markForbidden}, true
	}
	return wide{}, false
}

// marked reports whether content begins with a byte order mark, and in which order.
func (w wide) marked(content []byte) (marked, big bool) {
	for _, big := range []bool{true, false} {
		if w.size > 0 && bytes.HasPrefix(content, wide{size: w.size, big: big}.put(nil, '\ufeff')) {
			return true, big
		}
	}
	return false, false
}

func (w wide) order() interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if w.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// decode fails on a unit cut short, on half a surrogate pair, and on a number
// that is not a code point, as iconv does.
func (w wide) decode(content []byte) ([]byte, bool) {
	if len(content)%w.size != 0 {
		return nil, false
	}
	order := w.order()
	decoded := make([]byte, 0, len(content))
	for len(content) > 0 {
		var r rune
		if w.size == 4 {
			unit := order.Uint32(content)
			if unit > utf8.MaxRune {
				return nil, false
			}
			r = rune(unit)
		} else {
			r = rune(order.Uint16(content))
			if utf16.IsSurrogate(r) && len(content) >= 4 {
				r = utf16.DecodeRune(r, rune(order.Uint16(content[2:])))
				if r == utf8.RuneError {
					return nil, false
				}
				content = content[2:]
			}
		}
		if !utf8.ValidRune(r) {
			return nil, false
		}
		decoded = utf8.AppendRune(decoded, r)
		content = content[w.size:]
	}
	return decoded, true
}

// encode writes valid UTF-8, after a mark unless that is forbidden.
func (w wide) encode(content []byte) []byte {
	encoded := make([]byte, 0, w.size*(len(content)+1))
	if w.mark != markForbidden {
		encoded = w.put(encoded, '\ufeff')
	}
	for len(content) > 0 {
		r, size := utf8.DecodeRune(content)
		content = content[size:]
		encoded = w.put(encoded, r)
	}
	return encoded
}

func (w wide) put(to []byte, r rune) []byte {
	if w.size == 4 {
		return w.order().AppendUint32(to, uint32(r))
	}
	if first, second := utf16.EncodeRune(r); first != utf8.RuneError {
		return w.order().AppendUint16(w.order().AppendUint16(to, uint16(first)), uint16(second))
	}
	return w.order().AppendUint16(to, uint16(r))
}
