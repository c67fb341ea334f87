package inject

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/secret/replace"
)

const (
	framedValue = "the-value-0123456789"
	framedMark  = "placeholder-of-value"
)

// frame writes one frame of a WebSocket.
func frame(first byte, payload string, key []byte) []byte {
	out := []byte{first}
	masked := byte(0)
	if key != nil {
		masked = bitMasked
	}
	switch n := len(payload); {
	case n < 126:
		out = append(out, masked|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, masked|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, masked|127), uint64(n))
	}
	out = append(out, key...)
	for n := range len(payload) {
		c := payload[n]
		if key != nil {
			c ^= key[n%4]
		}
		out = append(out, c)
	}
	return out
}

// messages returns the contents of the messages of a stream, each as far as it
// came, and its control frames; nil if it is not one.
func messages(stream []byte) (all [][]byte) {
	var message []byte
	for len(stream) >= 2 {
		first, length, at := stream[0], uint64(stream[1]&^bitMasked), 2
		switch length {
		case 126:
			at = 4
		case 127:
			at = 10
		}
		masked := stream[1]&bitMasked != 0
		head := at
		if masked {
			head += 4
		}
		if len(stream) < head {
			break
		}
		switch length {
		case 126:
			length = uint64(binary.BigEndian.Uint16(stream[2:]))
		case 127:
			length = binary.BigEndian.Uint64(stream[2:])
		}
		end := head + int(min(length, uint64(len(stream)-head)))
		payload := bytes.Clone(stream[head:end])
		for n := range payload {
			if masked {
				payload[n] ^= stream[at+n%4]
			}
		}
		if first&opControl != 0 {
			all = append(all, payload)
		} else if message = append(message, payload...); first&bitFinal != 0 {
			all, message = append(all, message), nil
		}
		stream = stream[end:]
	}
	return append(all, message)
}

// pass sends a stream through in pieces of some size.
func pass(stream []byte, size int) (out []byte, err error) {
	f := newFrames([]*replace.Table{replace.New([]replace.Pair{{Old: []byte(framedValue), New: []byte(framedMark)}})}, nil)
	for len(stream) > 0 {
		n := min(size, len(stream))
		ready, _, err := f.next(bytes.Clone(stream[:n]))
		if err != nil {
			return nil, err
		}
		out, stream = append(out, ready...), stream[n:]
	}
	return out, nil
}

// FuzzFrames lets a host send anything as a WebSocket, in pieces of any size:
// the pieces change nothing, and no message that comes in holds the value.
func FuzzFrames(f *testing.F) {
	key := []byte{1, 0xff, 0, 7}
	for _, stream := range [][]byte{
		frame(0x81, "it is "+framedValue+".", nil),
		frame(0x81, "it is "+framedValue+".", key),
		bytes.Join([][]byte{frame(0x01, "half "+framedValue[:9], key), frame(0x89, framedValue, nil), frame(0x80, framedValue[9:]+" more", nil)}, nil),
		bytes.Join([][]byte{frame(0x82, framedValue[:9], nil), frame(0x82, framedValue[9:], nil)}, nil),
		frame(0x82, string(make([]byte, 300))+framedValue, key),
		{0x82, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0xf1, 0x00}, {0x89, 0x7e, 0x00, 0x7e}, {},
	} {
		f.Add(stream, uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		if len(stream) > 64<<10 {
			return
		}
		whole, err := pass(stream, max(1, len(stream)))
		pieces, piecesErr := pass(stream, int(size)+1)
		if (err == nil) != (piecesErr == nil) {
			t.Fatalf("whole: %v, in pieces: %v", err, piecesErr)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(whole, pieces) || len(whole) > len(stream) {
			t.Errorf("whole %q, in pieces %q", whole, pieces)
		}
		for _, message := range messages(whole) {
			if bytes.Contains(message, []byte(framedValue)) {
				t.Errorf("a message holds the value: %q", message)
			}
		}
	})
}

// The search of the fuzz target finds a value that nothing has replaced.
func TestFramesAreSearched(t *testing.T) {
	stream := append(frame(0x01, framedValue[:5], []byte{1, 2, 3, 4}), frame(0x80, framedValue[5:], nil)...)
	if all := messages(stream); !bytes.Contains(all[0], []byte(framedValue)) {
		t.Errorf("%q", all)
	}
}
