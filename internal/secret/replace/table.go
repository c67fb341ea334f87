package replace

import (
	"bytes"
	"iter"
	"slices"
)

// Pair is a sequence and its replacement.
type Pair struct {
	Old, New []byte
	ID       int // what Find gives
}

// Table holds the pairs that a stream replaces. It keeps their slices and never
// changes again, so that any number of streams may share it. The zero value
// replaces nothing.
type Table struct {
	pairs   []Pair
	begins  [256]bool            // the first byte of each
	seconds [1 << 16 / 64]uint64 // the first two bytes of each
	longest int
}

// New makes a table. Sequences of less than two bytes are left out.
func New(pairs []Pair) *Table {
	t := &Table{}
	for _, pair := range pairs {
		if len(pair.Old) < 2 {
			continue
		}
		t.pairs = append(t.pairs, pair)
		t.begins[pair.Old[0]] = true
		two := int(pair.Old[0])<<8 | int(pair.Old[1])
		t.seconds[two/64] |= 1 << (two % 64)
		t.longest = max(t.longest, len(pair.Old))
	}
	for n, pair := range t.pairs {
		// It would be replaced again and again.
		if slices.ContainsFunc(t.pairs, func(other Pair) bool { return bytes.Contains(pair.New, other.Old) }) {
			t.pairs[n].New = bytes.Repeat([]byte("*"), len(pair.Old))
		}
	}
	return t
}

// SameLength reports whether no replacement changes the length of a text.
func (t *Table) SameLength() bool {
	return !slices.ContainsFunc(t.pairs, func(p Pair) bool { return len(p.Old) != len(p.New) })
}

// Empty reports whether the table replaces nothing.
func (t *Table) Empty() bool { return len(t.pairs) == 0 }

// next is the first place from which on a sequence may begin, or the length of
// text. Nearly every byte of a stream is examined only here.
func (t *Table) next(text []byte, from int) int {
	for i := from; i+1 < len(text); i++ {
		two := uint(text[i])<<8 | uint(text[i+1])
		if t.seconds[two/64]>>(two%64)&1 != 0 {
			return i
		}
	}
	if last := len(text) - 1; last >= from && t.begins[text[last]] {
		return last
	}
	return len(text)
}

// match looks at the beginning of text, which is not empty. found is the index of
// the longest pair whose sequence is there, or -1; open reports whether a longer
// one may be, should more text follow.
func (t *Table) match(text []byte) (found int, open bool) {
	found = -1
	for n, pair := range t.pairs {
		switch {
		case len(text) < len(pair.Old):
			open = open || bytes.HasPrefix(pair.Old, text)
		case (found < 0 || len(pair.Old) > len(t.pairs[found].Old)) && bytes.HasPrefix(text, pair.Old):
			found = n
		}
	}
	return found, open
}

// Find gives the ID of the first sequence in text.
func (t *Table) Find(text []byte) (id int, ok bool) {
	for id := range t.IDs(text) {
		return id, true
	}
	return 0, false
}

// IDs gives the ID of each sequence in text.
func (t *Table) IDs(text []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := t.next(text, 0); i < len(text); i = t.next(text, i+1) {
			if found, _ := t.match(text[i:]); found >= 0 && !yield(t.pairs[found].ID) {
				return
			}
		}
	}
}

// Patch replaces in text itself, where no replacement changes the length, and
// gives the offset where an incomplete sequence may begin; with end, that is the
// length of text.
func (t *Table) Patch(text []byte, end bool) (held int) {
	for i := t.next(text, 0); i < len(text); i = t.next(text, i) {
		found, open := t.match(text[i:])
		switch {
		case open && !end:
			return i
		case found >= 0:
			copy(text[i:], t.pairs[found].New)
		}
		i++
	}
	return len(text)
}

// Text replaces in a whole text. Where there is nothing to replace it gives
// text itself.
func (t *Table) Text(text string) (replaced string, changed bool) {
	if _, ok := t.Find([]byte(text)); !ok {
		return text, false
	}
	return string(t.Stream().Append(nil, []byte(text), true)), true
}
