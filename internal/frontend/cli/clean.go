package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes one line that is safe to print out of bytes that an agent chose:
// commit messages, commands, paths. A terminal obeys such bytes (it retitles
// windows, answers queries into the shell's input, moves the cursor over what was
// printed), and bidirectional overrides show a different text from the one that is
// there (CVE-2021-42574).
//
// Complete escape sequences vanish; of an incomplete one only the introducer does,
// so that it cannot hide the rest of a line. Line breaks and tabs become a space.
// The result is valid UTF-8 without a control character.
func clean(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if n := escapeSequence(s[i:]); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			// Also a raw C1 byte: 0x9b is CSI to a terminal in an 8-bit mode.
			b.WriteRune(utf8.RuneError)
		case r == '\n' || r == '\r' || r == '\t' || r == '\v' || r == '\f' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			b.WriteByte(' ')
		case !unsafeRune(r):
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// cleanText is clean for text of several lines, such as the output of a set-up
// command in an error.
func cleanText(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = clean(strings.TrimSuffix(line, "\r"))
	}
	return strings.Join(lines, "\n")
}

// unsafeRune reports whether r can steer a terminal or the order and presence of
// what is shown: control characters (C0, DEL, C1) and the format characters
// (Cf), among them the bidirectional overrides and isolates, the invisible
// ones and the tags. The joiners are safe: scripts and emoji need them.
func unsafeRune(r rune) bool {
	if r >= ' ' && r < '\x7f' || r == '\u200c' || r == '\u200d' {
		return false // most of what there is, and the two joiners
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// escapeSequence gives the length in bytes of the complete escape sequence at
// the start of s, 0 when there is none. The grammar is that of ECMA-48
// sections 5.3 to 5.6, with xterm's BEL as a second end of a string.
func escapeSequence(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	rest := s[size:]
	switch {
	case r == '\x1b':
		if rest == "" {
			return 0
		}
		switch rest[0] {
		case '[':
			return sequenceLength(size+1, csiEnd(rest[1:]))
		case ']', 'P', 'X', '^', '_':
			return sequenceLength(size+1, stringEnd(rest[1:]))
		}
		return sequenceLength(size, shortEnd(rest))
	case r == '\u009b':
		return sequenceLength(size, csiEnd(rest))
	case r == '\u009d' || r == '\u0090' || r == '\u0098' || r == '\u009e' || r == '\u009f':
		return sequenceLength(size, stringEnd(rest))
	}
	return 0
}

func sequenceLength(introducer, rest int) int {
	if rest == 0 {
		return 0
	}
	return introducer + rest
}

// csiEnd reads parameter and intermediate bytes and one final byte.
func csiEnd(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return 0
		}
	}
	return 0
}

// stringEnd reads up to BEL or ST. A line break ends the search: no honest sequence
// holds one, and a dishonest one must not swallow lines.
func stringEnd(s string) int {
	for i := range len(s) {
		switch {
		case s[i] == '\n':
			return 0
		case s[i] == '\a':
			return i + 1
		case strings.HasPrefix(s[i:], "\x1b\\") || strings.HasPrefix(s[i:], "\u009c"):
			return i + 2
		}
	}
	return 0
}

// shortEnd reads the rest of an escape sequence without parameters.
func shortEnd(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x30 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x2f:
			return 0
		}
	}
	return 0
}
