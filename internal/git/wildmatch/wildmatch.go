// Package wildmatch decides whether git's patterns match a path: the globs of
// gitignore(5) and gitattributes(5), byte for byte as git decides them, their
// oddities included.
//
// It deliberately knows no files, no priorities and no Unicode: names are
// bytes, and letter case means ASCII. Start reading at [Pattern], the form in
// which both kinds of files use globs; [Glob] is the machine below it.
//
// git's own matcher is exponential in the number of stars. A sandbox writes
// the patterns and the names, so this one compiles a glob to steps once and
// keeps two places to come back to; see [Glob.Match] for the bound.
package wildmatch

import "strings"

// Mode says how a glob reads its text.
type Mode struct {
	Path bool // '/' separates: only "**" crosses it, and '?' and '[' never match it
	Fold bool // core.ignoreCase: ASCII letters match in either case
}

// Glob is a compiled glob. The zero value matches only the empty text. It is
// immutable and safe for concurrent use.
type Glob struct {
	steps []step
	least int // the least number of bytes that a text must have
	path  bool
	fold  bool
	never bool // malformed: git never lets such a glob match
}

type op uint8

const (
	opByte op = iota // exactly this byte
	opAny            // any byte, in path mode except '/'
	opSet            // a byte of the set
	opStar           // any number of bytes, in path mode up to the next '/'
	opDeep           // any number of any bytes
	opDirs           // "**/": nothing, or anything that ends in '/'
)

type step struct {
	op   op
	byte byte
	set  *set
}

// Compile prepares a glob. It cannot fail: a malformed glob never matches. As
// in git's C strings, a NUL ends the glob.
func Compile(glob string, mode Mode) Glob {
	if i := strings.IndexByte(glob, 0); i >= 0 {
		glob = glob[:i]
	}
	g := Glob{path: mode.Path, fold: mode.Fold}
	for i := 0; i < len(glob); {
		switch c := glob[i]; c {
		case '\\':
			// A trailing backslash has nothing to escape. And git folds the
			// text but not an escaped letter, which then meets no text at all.
			if i+1 == len(glob) || mode.Fold && isUpper(glob[i+1]) {
				return Glob{never: true}
			}
			g.steps = append(g.steps, step{op: opByte, byte: glob[i+1]})
			i += 2
		case '?':
			g.steps = append(g.steps, step{op: opAny})
			i++
		case '[':
			s, next := parseSet(glob, i+1, mode)
			if s == nil {
				return Glob{never: true}
			}
			g.steps = append(g.steps, step{op: opSet, set: s})
			i = next
		case '*':
			var s step
			s, i = parseStars(glob, i, mode.Path)
			if n := len(g.steps); n == 0 || s.op != opDirs || g.steps[n-1].op != opDirs {
				g.steps = append(g.steps, s) // a second "**/" adds nothing
			}
		default:
			if mode.Fold {
				c = lower(c)
			}
			g.steps = append(g.steps, step{op: opByte, byte: c})
			i++
		}
	}
	for i := range g.steps {
		if g.steps[i].op < opStar {
			g.least++
		}
	}
	return g
}

// Never reports whether the glob is malformed, so that no text matches.
func (g *Glob) Never() bool { return g.never }

// parseStars reads the run of stars at glob[i]. Two or more are "**" only
// where they fill a whole path component; elsewhere they count as one.
func parseStars(glob string, i int, path bool) (step, int) {
	end := i
	for end < len(glob) && glob[end] == '*' {
		end++
	}
	if !path {
		return step{op: opDeep}, end
	}
	rest := glob[end:]
	opens := i == 0 || glob[i-1] == '/'
	closes := rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)
	switch {
	case end-i < 2 || !opens || !closes:
		return step{op: opStar}, end
	case rest != "" && rest[0] == '/':
		return step{op: opDirs}, end + 1
	}
	// At the end, or before an escaped slash, which "**" cannot swallow.
	return step{op: opDeep}, end
}

// Match reports whether the glob matches the whole text.
//
// Of the stars already passed only two can still change the outcome: the last
// '*' of the present path component, and the last "**" before it. Every
// earlier one would only reach places that the later one reaches too. In path
// mode "**" restarts at directories only, so the work stays near
// len(text) × len(glob) for any input.
func (g *Glob) Match(text string) bool {
	if g.never || len(text) < g.least {
		return false
	}
	at, pos := 0, 0          // next step, next byte
	starAt, starPos := -1, 0 // after the last '*', and its present end
	deepAt, deepPos := -1, 0 // the same for "**"
	dirs := false            // that one is "**/"
	for at < len(g.steps) || pos < len(text) {
		if at < len(g.steps) {
			s := &g.steps[at]
			if s.op >= opStar {
				at++
				switch {
				case s.op == opStar:
					starAt, starPos = at, pos
				case at == len(g.steps) && s.op == opDeep:
					return true
				default:
					starAt = -1
					deepAt, deepPos, dirs = at, pos, s.op == opDirs
				}
				continue
			}
			if pos < len(text) && g.accepts(s, text[pos]) {
				at++
				pos++
				continue
			}
		}
		switch {
		case starAt >= 0 && starPos < len(text) && text[starPos] != '/':
			starPos++
			at, pos = starAt, starPos
		case deepAt >= 0 && dirs:
			slash := strings.IndexByte(text[deepPos:], '/')
			if slash < 0 {
				return false
			}
			deepPos += slash + 1
			starAt, at, pos = -1, deepAt, deepPos
		case deepAt >= 0 && deepPos < len(text):
			deepPos++
			starAt, at, pos = -1, deepAt, deepPos
		default:
			return false
		}
	}
	return true
}

func (g *Glob) accepts(s *step, c byte) bool {
	if g.fold {
		c = lower(c)
	}
	switch s.op {
	case opByte:
		return c == s.byte
	case opAny:
		return !g.path || c != '/'
	default:
		return s.set.has(c)
	}
}
