package ignore

import (
	"bytes"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git/wildmatch"
)

// parse reads the content of an ignore file. Every content is valid.
func parse(content []byte, fold bool) []wildmatch.Pattern {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	var patterns []wildmatch.Pattern
	for len(content) > 0 {
		var line []byte
		line, content, _ = bytes.Cut(content, []byte{'\n'})
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		text, _, _ := strings.Cut(string(line), "\x00") // git's lines are C strings
		if text = trimSpaces(text); text != "" {
			patterns = append(patterns, wildmatch.Parse(text, fold))
		}
	}
	return patterns
}

// trimSpaces drops trailing spaces, except one quoted by a backslash and those
// before it.
func trimSpaces(text string) string {
	end := 0 // after the last byte that stays
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = i + 1
	}
	return text[:min(end, len(text))]
}
