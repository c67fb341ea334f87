package replace

import (
	"iter"
	"slices"
)

// Stream replaces in one stream.
type Stream struct {
	t    *Table
	held []byte // bytes that may begin a sequence
	work []byte
}

// Stream begins a stream.
func (t *Table) Stream() *Stream { return &Stream{t: t} }

// Append appends to dst the output that is certain after the next piece src; with
// end, src is the last piece. dst and src must not overlap.
func (s *Stream) Append(dst, src []byte, end bool) []byte {
	text := append(append(s.work[:0], s.held...), src...)
	s.held = s.held[:0]
	from := 0 // start of the part not yet appended
	for i := s.t.next(text, 0); i < len(text); i = s.t.next(text, i) {
		found, open := s.t.match(text[i:])
		if open && !end {
			s.held = append(s.held, text[i:]...)
			dst = append(dst, text[from:i]...)
			from = len(text)
			break
		}
		if found < 0 {
			i++
			continue
		}
		dst = append(dst, text[from:i]...)
		pair := s.t.pairs[found]
		// The replacement takes the place of the end of the sequence, and
		// sequences that begin inside it are looked for too: with the next bytes,
		// its end can be the beginning of another sequence.
		end := i + len(pair.Old)
		if len(pair.New) > len(pair.Old) {
			text = slices.Insert(text, end, make([]byte, len(pair.New)-len(pair.Old))...)
			end += len(pair.New) - len(pair.Old)
		}
		from = end - len(pair.New)
		copy(text[from:end], pair.New)
		i = from + min(1, len(pair.New))
	}
	s.work = text
	return append(dst, text[from:]...)
}

// Held is how many bytes wait for the next piece.
func (s *Stream) Held() int { return len(s.held) }

// Wipe clears the stream's buffer. It must not be used after that.
func (s *Stream) Wipe() {
	clear(s.work[:cap(s.work)])
	clear(s.held[:cap(s.held)])
	s.work, s.held = nil, nil
}

// Finder looks for the sequences of a table in a stream, and holds nothing back.
type Finder struct {
	t    *Table
	tail []byte // the end of the input, too short to hold a sequence
}

// Finder begins a search.
func (t *Table) Finder() *Finder { return &Finder{t: t} }

// Next gives the ID of each sequence that ends in the next piece of the stream;
// one that is shorter than the longest may be given twice.
func (f *Finder) Next(piece []byte) iter.Seq[int] {
	text := append(f.tail, piece...)
	f.tail = append([]byte(nil), text[max(0, len(text)-max(0, f.t.longest-1)):]...)
	return f.t.IDs(text)
}
