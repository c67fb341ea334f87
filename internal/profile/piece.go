package profile

import (
	"bytes"
	"encoding/json"
	"slices"
)

// PieceOf says which lines of a client have a piece of a text that goes on in the
// next line.
type PieceOf struct {
	Is   [][2]string // names and values at the top of the line
	Text []string    // where the piece is
}

// Piece is such a line. The pieces of a text belong together: a word may begin in
// one and end in another.
type Piece struct {
	Text string

	line     string
	document map[string]any
	at       []string
}

// Piece reads a line of the client; ok is false for one that is whole by itself.
func (p Profile) Piece(line []byte) (piece Piece, ok bool) {
	if len(p.Pieces) == 0 {
		return piece, false
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var document map[string]any
	if decoder.Decode(&document) != nil {
		return piece, false
	}
	for _, one := range p.Pieces {
		if slices.ContainsFunc(one.Is, func(is [2]string) bool { return str(document, is[0]) != is[1] }) {
			continue
		}
		if text, ok := below(document, one.Text).(string); ok {
			return Piece{Text: text, line: string(line), document: document, at: one.Text}, true
		}
	}
	return piece, false
}

func below(value any, path []string) any {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// Follows reports whether the pieces are of the same text.
func (p Piece) Follows(first Piece) bool { return slices.Equal(p.at, first.at) }

// Line is the line that it stands in.
func (p Piece) Line() string { return p.line }

// Set changes the piece in its line.
func (p *Piece) Set(text string) {
	object, _ := below(p.document, p.at[:len(p.at)-1]).(map[string]any)
	object[p.at[len(p.at)-1]] = text
	if data, err := json.Marshal(p.document); err == nil {
		p.Text, p.line = text, string(data)+"\n"
	}
}
