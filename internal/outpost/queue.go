package outpost

import "sync"

// queue is received data that was not read yet, in pieces of one frame each.
// Only small frames are copied, which share a piece: a queue takes at most twice
// the memory of a window, regardless of the sizes of its frames.
type queue struct {
	pieces []*piece
	held   int // bytes
}

// piece is data[from:to].
type piece struct {
	data     [maxFrame]byte
	from, to int
}

var pool = sync.Pool{New: func() any { return new(piece) }}

// newPiece returns a piece with room for n bytes, which are read into it next.
func newPiece(n int) *piece {
	p := pool.Get().(*piece)
	p.from, p.to = 0, n
	return p
}

const mostPieces = 2 * window / maxFrame

// add takes p over.
func (q *queue) add(p *piece) {
	q.held += p.to
	if len(q.pieces) > 0 && p.to <= maxFrame/2 {
		q.fill(q.pieces[len(q.pieces)-1], p)
	}
	if p.from == p.to {
		pool.Put(p)
		return
	}
	if q.pieces = append(q.pieces, p); len(q.pieces) > mostPieces {
		q.compact()
	}
}

// fill moves bytes into the free part of to.
func (*queue) fill(to, p *piece) {
	n := copy(to.data[to.to:], p.data[p.from:p.to])
	to.to += n
	p.from += n
}

// compact leaves no room in any piece except the last one.
func (q *queue) compact() {
	dense := q.pieces[:0:0]
	for _, p := range q.pieces {
		if len(dense) > 0 {
			q.fill(dense[len(dense)-1], p)
		}
		if p.from == p.to {
			pool.Put(p)
			continue
		}
		copy(p.data[:], p.data[p.from:p.to])
		p.from, p.to = 0, p.to-p.from
		dense = append(dense, p)
	}
	q.pieces = dense
}

// read moves bytes into p.
func (q *queue) read(p []byte) (n int) {
	for len(q.pieces) > 0 && n < len(p) {
		first := q.pieces[0]
		moved := copy(p[n:], first.data[first.from:first.to])
		first.from += moved
		n += moved
		if first.from == first.to {
			q.pieces[0] = nil
			q.pieces = q.pieces[1:]
			pool.Put(first)
		}
	}
	if q.held -= n; q.held == 0 {
		q.pieces = nil // an idle stream holds nothing
	}
	return n
}
