package outpost

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Frames of any sizes come out as they went in, and take no more than twice a
// window's memory.
func TestQueueKeepsWhatItTakes(t *testing.T) {
	for _, sizes := range [][]int{{13}, {maxFrame}, {1, maxFrame}, {maxFrame/2 + 1}, {1, maxFrame/2 + 1}, {maxFrame / 2, maxFrame/2 + 1, 7, maxFrame}} {
		var q queue
		var sent, got bytes.Buffer
		random := rand.New(rand.NewPCG(1, 2))
		for turn := 0; sent.Len() < window+window/2; turn++ {
			n := sizes[turn%len(sizes)]
			for q.held+n > window {
				some := make([]byte, 1+random.IntN(3*maxFrame))
				got.Write(some[:q.read(some)])
			}
			p := newPiece(n)
			for i := range p.data[:n] {
				p.data[i] = byte(turn + i%251)
			}
			sent.Write(p.data[:n])
			q.add(p)
			if len(q.pieces) > mostPieces {
				t.Fatalf("frames of %v take %d pieces", sizes, len(q.pieces))
			}
		}
		rest := make([]byte, window)
		got.Write(rest[:q.read(rest)])
		if !bytes.Equal(sent.Bytes(), got.Bytes()) || q.held != 0 || q.pieces != nil {
			t.Errorf("frames of %v: %d bytes of %d came out as they were, %d are left", sizes, got.Len(), sent.Len(), q.held)
		}
	}
}
