package redact

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"sync"
)

// Stream removes secrets from what is written to it in pieces, wherever they are
// cut, and writes the rest to another writer. It is for the output of a terminal,
// where colours and moves of the cursor stand between the texts.
type Stream struct {
	secrets Secrets
	to      io.Writer

	mu   sync.Mutex
	rest []byte // not written yet: it may be the beginning of a secret
}

// restMost bounds the output that waits for the end of a word.
const restMost = 64 << 10

// Stream writes to a writer all but the secrets. Close writes what is left.
func (s Secrets) Stream(to io.Writer) *Stream { return &Stream{secrets: s, to: to} }

// Write takes a piece. Its error is that of the writer behind.
func (s *Stream) Write(piece []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, piece...)
	// The end stays: as much as the longest value may have, and a whole word.
	end := max(0, len(s.rest)-s.secrets.longest())
	whole := s.secrets.ByValue(string(s.rest))
	for range mostCuts {
		end = before(s.rest[:end])
		if end == 0 {
			break
		}
		head, tail := s.secrets.ByValue(string(s.rest[:end])), s.secrets.ByValue(string(s.rest[end:]))
		if head+tail == whole { // no value has it in its middle
			s.rest = append(s.rest[:0], s.rest[end:]...)
			return len(piece), s.write(head)
		}
	}
	if len(s.rest) > restMost {
		s.rest = s.rest[:0]
		return len(piece), s.write(whole)
	}
	return len(piece), nil
}

// mostCuts bounds how many places are tried for a cut.
const mostCuts = 64

// before is where the last line or escape sequence of a text begins, else its
// last word; 0 if there is one alone.
func before(text []byte) int {
	if at := bytes.LastIndexAny(text, "\r\n\x1b"); at > 0 {
		return at
	}
	return max(0, bytes.LastIndexAny(text, " \t"))
}

// Close writes what is left; the writer behind stays open.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := s.secrets.ByValue(string(s.rest))
	s.rest = nil
	return s.write(whole)
}

// escape matches what moves the cursor or sets a colour (ECMA-48, section 5.4), or
// begins another sequence.
var escape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|.)?`)
})

// write removes the rest by shape and name, between escape sequences.
func (s *Stream) write(text string) error {
	var b strings.Builder
	at := 0
	for _, found := range escape().FindAllStringIndex(text, -1) {
		b.WriteString(byName(text[at:found[0]]))
		b.WriteString(text[found[0]:found[1]])
		at = found[1]
	}
	b.WriteString(byName(text[at:]))
	_, err := io.WriteString(s.to, b.String())
	return err
}

// longest is the length of the longest value.
func (s Secrets) longest() int {
	most := 0
	for _, value := range s.Values {
		most = max(most, len(value))
	}
	if s.Known != nil {
		for _, t := range s.Known.current() {
			most = max(most, t.most)
		}
	}
	return most
}
