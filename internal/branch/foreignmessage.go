package branch

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
)

// ownTrailers is the prefix of the trailers by which litterbox knows its commits.
const ownTrailers = "litterbox-"

// tame makes the text of an agent's commit harmless where it lands: listings
// of any git print it on the human's terminal, and litterbox reads trailers
// from the branch. Readers otherwise see the same text.
func (c *AgentCommit) tame(encoding string) {
	text := func(b string) string {
		if encoding != "" {
			if decoded, ok := attribute.Decode([]byte(b), encoding); ok {
				return string(decoded)
			}
		}
		return b
	}
	c.Message = []byte(tameMessage(text(string(c.Message))))
	for _, s := range []*git.Signature{&c.Author, &c.Committer} {
		s.Name, s.Email = tameLine(text(s.Name)), tameLine(text(s.Email))
	}
}

// tameMessage makes visible what a terminal would obey, and quotes lines that
// would pass for our trailers.
func tameMessage(message string) string {
	lines := strings.Split(strings.TrimPrefix(message, "\ufeff"), "\n")
	for n, line := range lines {
		line = visible(strings.TrimSuffix(line, "\r"))
		if isOwnTrailer(line) {
			line = "> " + line
		}
		lines[n] = line
	}
	return strings.Join(lines, "\n")
}

func tameLine(text string) string {
	return visible(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' || r == ' ' }), " "))
}

// isOwnTrailer reports whether git, in any configuration (trailer.separators),
// or litterbox would take a line for one of our trailers.
func isOwnTrailer(line string) bool {
	line = strings.TrimLeft(line, " \t")
	if len(line) < len(ownTrailers) || !strings.EqualFold(line[:len(ownTrailers)], ownTrailers) {
		return false
	}
	rest := strings.TrimLeftFunc(line, func(r rune) bool {
		return r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	})
	rest = strings.TrimLeft(rest, " \t")
	return rest != "" && (unicode.IsPunct(rune(rest[0])) || unicode.IsSymbol(rune(rest[0])))
}

// visible writes control and format characters readably: an escape as ^[,
// others by their number. The result is valid UTF-8.
func visible(text string) string {
	harmless := func(r rune) bool {
		if r >= ' ' && r < '\x7f' || r == '\t' || r == '\u200c' || r == '\u200d' {
			return true // the joiners: scripts and emoji need them
		}
		return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029'
	}
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !harmless(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text { // an invalid byte is U+FFFD
		switch {
		case harmless(r):
			b.WriteRune(r)
		case r < ' ' || r == '\x7f':
			b.WriteByte('^')
			b.WriteByte(byte(r) ^ 0x40)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}
