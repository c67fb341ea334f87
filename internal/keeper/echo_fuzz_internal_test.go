package keeper

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// FuzzTap lets a guest send anything while a command runs. Its client gets it
// unchanged, and what watchers see does not depend on how it was cut: it is the
// same as the client's own reader makes of these bytes.
func FuzzTap(f *testing.F) {
	frames := func(all ...string) []byte {
		var b []byte
		for _, one := range all {
			b = append(binary.BigEndian.AppendUint32(append(b, one[0]), uint32(len(one)-1)), one[1:]...)
		}
		return b
	}
	f.Add(frames("oone\ntw", "eoops", "o", "oo\n", "r{}", "olate\n"), 3)
	f.Add(append(frames("ox\n"), "o\xff\xff\xff\xffxxxx"...), 1)
	f.Add(frames("ox", "x{}", "e\n")[:9], 7)
	f.Add([]byte("o\x00\x00\x00\x00o\x00\x00"), 2)
	f.Fuzz(func(t *testing.T, sent []byte, step int) {
		step = 1 + (step&0x7fffffff)%1000
		e := &echo{}
		relay(t, e, 5, step, sent)
		var want, got [2][]byte
		for r := wire.NewReader(bytes.NewReader(sent)); ; {
			kind, payload, err := r.Next()
			if err != nil || kind == wire.KindResult || kind == wire.KindError {
				break
			}
			switch kind {
			case wire.KindStdout:
				want[0] = append(want[0], payload...)
			case wire.KindStderr:
				want[1] = append(want[1], payload...)
			}
		}
		if len(sent) > echoBytes {
			return // some of it is forgotten
		}
		ends := 0
		for _, piece := range watched(t, e, 0) {
			stream := 0
			if piece.Error {
				stream = 1
			}
			if piece.Cycle != 5 || piece.Lost != 0 {
				t.Fatalf("%q: %+v", sent, piece)
			}
			if piece.End {
				ends++
				continue
			}
			if mid := len(got[stream]) > 0 && !bytes.HasSuffix(got[stream], []byte("\n")); mid != piece.Mid {
				t.Fatalf("%q: behind %q mid is %t", sent, got[stream], piece.Mid)
			}
			got[stream] = append(got[stream], piece.Data...)
		}
		// A frame that breaks off has been seen as far as it came.
		for i := range got {
			if !bytes.HasPrefix(got[i], want[i]) || len(got[i]) > len(sent) {
				t.Fatalf("%q: stream %d is %q, want %q", sent, i, got[i], want[i])
			}
		}
		if ends != 1 {
			t.Fatalf("%q: %d ends", sent, ends)
		}
	})
}
