package mcp

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// bounded keeps the first limit bytes that are written and counts the rest.
type bounded struct {
	limit   int
	kept    []byte
	dropped int64
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := min(len(p), b.limit-len(b.kept))
	b.kept = append(b.kept, p[:keep]...)
	b.dropped += int64(len(p) - keep)
	return len(p), nil
}

// outputMost is how much of each stream of a command can be shown at most.
const outputMost = 100_000

// stream keeps the beginning and the end of what a command writes. It is safe
// for concurrent use; a command may write faster than memory lasts.
type stream struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte
	total int64
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total += int64(len(p))
	n := min(len(p), outputMost/2-len(s.head))
	s.head = append(s.head, p[:n]...)
	s.tail = append(s.tail, p[n:]...)
	if len(s.tail) > outputMost { // twice what is kept, so that moving is rare
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-outputMost/2:]...)
	}
	return len(p), nil
}

// take returns what has been written since the last time.
func (s *stream) take() taken {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := taken{head: s.head, tail: s.tail, total: s.total}
	s.head, s.tail, s.total = nil, nil, 0
	return t
}

// lastLine is the last line so far, for progress.
func (s *stream) lastLine() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.tail
	if len(text) == 0 {
		text = s.head
	}
	text = bytes.TrimRight(text, "\r\n \t")
	text = text[bytes.LastIndexAny(text, "\r\n")+1:]
	return oneLine(visible(text), 120)
}

// written counts the bytes since the last take.
func (s *stream) written() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// wantsTerminal reports whether an editor has complained that it has no terminal.
// Vim says so and then waits for ever: with no input it reads from standard error,
// which is a pipe that never has any.
func (s *stream) wantsTerminal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.head, []byte("Vim: Warning: Input is not from a terminal")) ||
		bytes.Contains(s.head, []byte("Vim: Warning: Output is not to a terminal"))
}

// taken is a part of a command's output.
type taken struct {
	head, tail []byte
	total      int64
}

// cut gives the output as text of about limit bytes: all of it, or beginning and
// end with the count of the bytes missing between them.
func (t taken) cut(limit int) (text string, whole bool) {
	all := append(bytes.Clone(t.head), t.tail...)
	if binary(all) {
		return fmt.Sprintf("binary, %d bytes\n", t.total), false
	}
	if t.total <= int64(limit) && int64(len(all)) == t.total {
		return visible(all), true
	}
	half := limit / 2
	head, tail := t.head, all
	head = lineStart(head[:min(half, len(head))])
	tail = lineEnd(tail[max(0, len(tail)-half):])
	missing := t.total - int64(len(head)+len(tail))
	return fmt.Sprintf("%s\n[… %d of %d bytes left out …]\n%s", strings.TrimRight(visible(head), "\n"), missing, t.total, visible(tail)), false
}

// binary reports whether output is not text: a tenth or more of it is not UTF-8, or
// is control characters that text does not have. Terminals' own sequences and text
// in an older encoding are text.
func binary(output []byte) bool {
	strange, all := 0, 0
	for len(output) > 0 {
		r, size := utf8.DecodeRune(output)
		switch {
		case r == utf8.RuneError && size == 1:
			strange++
		case r < ' ' && !strings.ContainsRune("\a\b\t\n\v\f\r\x1b", r):
			strange++
		}
		all++
		output = output[size:]
	}
	return strange > 0 && strange*10 >= all
}

// lineStart cuts a beginning at the end of its last line, where that costs little.
func lineStart(p []byte) []byte {
	if at := bytes.LastIndexByte(p, '\n') + 1; at > len(p)*3/4 {
		return p[:at]
	}
	return p
}

// lineEnd cuts an end at the beginning of its first line, where that costs little.
func lineEnd(p []byte) []byte {
	if at := bytes.IndexByte(p, '\n') + 1; at < len(p)/4 {
		return p[at:]
	}
	return p
}

// escapes are the control sequences of terminals: CSI, OSC and the like with
// their end, and the two-byte ones (ECMA-48).
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")
})

// visible makes text out of a program's output: colours and cursor movements go, a
// line that was written over shows its last state, and no control character is left
// that could control a reader's terminal.
func visible(output []byte) string {
	text := strings.ToValidUTF8(string(output), "\ufffd")
	if strings.ContainsRune(text, '\x1b') {
		text = escapes().ReplaceAllString(text, "")
	}
	if strings.ContainsRune(text, '\r') {
		lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
		for i, line := range lines {
			line = strings.TrimRight(line, "\r")
			lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
		}
		text = strings.Join(lines, "\n")
	}
	return printable(text)
}

// printable replaces characters that can control a terminal or reorder the text;
// line breaks and tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d' || !(unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029') {
			return r
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// oneLine is printable text on one line of at most that many bytes.
func oneLine(text string, most int) string {
	text = strings.Join(strings.Fields(printable(text)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
