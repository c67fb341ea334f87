package wildmatch

import "strings"

// Pattern is one pattern of an ignore or attributes file.
type Pattern struct {
	Negated bool // it began with '!'
	DirOnly bool // it ended in '/': directories only

	// Nearly all patterns in real files are a plain name or "*.ext"; those
	// compare bytes and never reach the glob.
	kind    kind
	fold    bool
	literal string // what the text must be, end in, or begin with
	glob    Glob   // what follows the literal
}

type kind uint8

const (
	wholeName kind = iota // the basename is literal
	endOfName             // the basename ends in literal: "*.o"
	globName              // the basename matches glob
	wholePath             // the path is literal
	globPath              // the path begins with literal, the rest matches glob
)

// special are the bytes that make a pattern more than a literal.
const special = `*?[\`

// Parse reads one pattern: a line from which comments, trailing spaces, and
// attributes are gone. As in git's C strings, a NUL ends it.
func Parse(text string, fold bool) Pattern {
	if i := strings.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	p := Pattern{fold: fold}
	text, p.Negated = strings.CutPrefix(text, "!")
	text, p.DirOnly = strings.CutSuffix(text, "/")

	wild := strings.IndexAny(text, special)
	if !strings.Contains(text, "/") {
		switch {
		case wild < 0:
			p.kind, p.literal = wholeName, text
		case wild == 0 && text[0] == '*' && !strings.ContainsAny(text[1:], special):
			p.kind, p.literal = endOfName, text[1:]
		default:
			p.kind, p.glob = globName, Compile(text, Mode{Fold: fold})
		}
		return p
	}
	if strings.HasPrefix(text, "/") {
		text = text[1:]
		wild--
	}
	if wild < 0 {
		p.kind, p.literal = wholePath, text
		return p
	}
	// The glob is compiled without the literal before it, as in git, and that shows:
	// in "a**/b" the "**" then stands at the start of a glob, and "ab" matches.
	p.kind, p.literal, p.glob = globPath, text[:wild], Compile(text[wild:], Mode{Path: true, Fold: fold})
	return p
}

// Match reports whether the pattern matches path. Slashes separate; base is where
// the part below the pattern's own directory begins, name where the last component
// begins. DirOnly is left to the caller, who knows whether the path is a directory.
func (p *Pattern) Match(path string, base, name int) bool {
	switch p.kind {
	case wholeName:
		return p.equal(path[name:], p.literal)
	case endOfName:
		rest := len(path) - name - len(p.literal)
		return rest >= 0 && p.equal(path[name+rest:], p.literal)
	case globName:
		return p.glob.Match(path[name:])
	case wholePath:
		return p.equal(path[base:], p.literal)
	default:
		end := base + len(p.literal)
		return end <= len(path) && p.equal(path[base:end], p.literal) && p.glob.Match(path[end:])
	}
}

func (p *Pattern) equal(a, b string) bool {
	if !p.fold || a == b {
		return a == b
	}
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}
