// Package attribute knows what gitattributes(5) says about a path, and applies
// git's built-in conversions as data: line endings, ident,
// working-tree-encoding, and the pointer of Git LFS.
//
// It is pure: the caller reads files, configuration and blobs. It runs no
// filter, because a filter is a command that content from a sandbox chooses.
// Start reading at [Stack.Lookup] and [ToGit].
package attribute

import "strings"

// Text is the state of the attribute text, or of crlf, its old name.
type Text string

// The states of text. Any other value counts as unspecified.
const (
	TextUnspecified Text = ""
	TextSet         Text = "set"
	TextUnset       Text = "unset"
	TextAuto        Text = "auto"
	TextInput       Text = "input" // as TextSet with eol=lf
)

// Attributes are the attributes of a path that the conversions need.
type Attributes struct {
	Text                Text
	CRLF                Text   // the deprecated crlf, which counts if Text is unspecified
	EOL                 string // "lf", "crlf" or ""
	WorkingTreeEncoding string // as written; "" when there is none
	Ident               bool
	Filter              string // name of a filter driver, or ""
}

// Stack is the attribute lines in force in one directory. It is immutable, so
// that siblings share their parent, and safe for concurrent use.
type Stack struct {
	fold   bool
	top    *level // the deepest file with lines
	info   *level // outranks all others
	macros macros

	global     macros // of the built-in and global lines, for Enter("")
	infoMacros macros
}

// level is one file.
type level struct {
	below *level
	dir   string
	lines []line
}

// Option is an option for [NewStack].
type Option int

// IgnoreCase is core.ignoreCase: patterns match in either case.
const IgnoreCase Option = 1

// NewStack makes the stack of the root directory. global is the content of
// the system's attributes file followed by that of core.attributesFile; info
// is that of info/attributes. The root's own .gitattributes is for Enter("").
func NewStack(global, info []byte, options ...Option) *Stack {
	s := &Stack{}
	for _, o := range options {
		s.fold = s.fold || o == IgnoreCase
	}
	globalLines, globalMacros := parse(global, s.fold)
	infoLines, infoMacros := parse(info, s.fold)
	_, builtin := parse([]byte("[attr]binary -diff -merge -text"), false)
	s.top = push(nil, "", globalLines)
	s.info = push(nil, "", infoLines)
	s.global = merge(builtin, globalMacros)
	s.infoMacros = infoMacros
	s.macros = merge(s.global, infoMacros)
	return s
}

// Enter makes the stack of dir, a directory below the one of s (relative to the
// root, with slashes, "" is the root) whose .gitattributes has the given content;
// nil when there is none. s stays as it is. Macros may be defined only in the root.
//
// The lines take up to some forty times the memory of the content; the caller
// bounds a file that a sandbox wrote.
func (s *Stack) Enter(dir string, gitattributes []byte) *Stack {
	if len(gitattributes) == 0 {
		return s
	}
	lines, defined := parse(gitattributes, s.fold)
	if len(lines) == 0 && (dir != "" || len(defined) == 0) {
		return s
	}
	child := *s
	child.top = push(s.top, dir, lines)
	if dir == "" {
		child.macros = merge(s.global, defined, s.infoMacros)
	}
	return &child
}

func push(top *level, dir string, lines []line) *level {
	if len(lines) == 0 {
		return top
	}
	return &level{below: top, dir: dir, lines: lines}
}

// Lookup returns the attributes of path, a file, relative to the root.
func (s *Stack) Lookup(path string) Attributes {
	r := resolution{macros: s.macros, open: numKnown}
	name := strings.LastIndexByte(path, '/') + 1
	for _, top := range [...]*level{s.info, s.top} {
		for l := top; l != nil; l = l.below {
			base, below := l.base(path)
			for i := len(l.lines) - 1; below && i >= 0; i-- {
				if r.open == 0 {
					return r.attributes()
				}
				if l.lines[i].pattern.Match(path, base, name) {
					r.apply(l.lines[i].states)
				}
			}
		}
	}
	return r.attributes()
}

// base returns where the part of path below the level's directory begins.
func (l *level) base(path string) (int, bool) {
	if l.dir == "" {
		return 0, true
	}
	if len(path) <= len(l.dir) || path[len(l.dir)] != '/' || path[:len(l.dir)] != l.dir {
		return 0, false
	}
	return len(l.dir) + 1, true
}

// known is an attribute that the conversions read.
type known int

const (
	knownText known = iota
	knownCRLF
	knownEOL
	knownEncoding
	knownIdent
	knownFilter
	numKnown
	unknown = numKnown
)

func knownName(name string) known {
	switch name {
	case "text":
		return knownText
	case "crlf":
		return knownCRLF
	case "eol":
		return knownEOL
	case "working-tree-encoding":
		return knownEncoding
	case "ident":
		return knownIdent
	case "filter":
		return knownFilter
	}
	return unknown
}

// resolution is the look-up of one path. The first decision counts, since the
// lines come in falling priority.
type resolution struct {
	macros  macros
	states  [numKnown]*state
	open    known  // how many of states are undecided
	decided []bool // by macro
}

// apply takes over the states of a line that matched, the last one first, and
// expands macros in place. It keeps its own stack: macros can nest as deep as
// a hostile file is long.
func (r *resolution) apply(states []state) {
	var buffer [8][]state
	pending := append(buffer[:0], states)
	for len(pending) > 0 {
		top := &pending[len(pending)-1]
		if len(*top) == 0 {
			pending = pending[:len(pending)-1]
			continue
		}
		st := &(*top)[len(*top)-1]
		*top = (*top)[:len(*top)-1]
		if st.known != unknown && r.states[st.known] != nil {
			continue
		}
		m, isMacro := r.macros[st.name]
		if isMacro {
			if r.decided == nil {
				r.decided = make([]bool, len(r.macros))
			}
			if r.decided[m.index] {
				continue
			}
			r.decided[m.index] = true
		}
		if st.known != unknown {
			r.states[st.known] = st
			r.open--
		}
		if isMacro && st.kind == isSet {
			pending = append(pending, m.states)
		}
	}
}

func (r *resolution) attributes() Attributes {
	a := Attributes{
		Text:   r.text(knownText),
		CRLF:   r.text(knownCRLF),
		EOL:    r.value(knownEOL),
		Ident:  r.states[knownIdent] != nil && r.states[knownIdent].kind == isSet,
		Filter: r.value(knownFilter),
	}
	if a.EOL != "lf" && a.EOL != "crlf" {
		a.EOL = ""
	}
	a.WorkingTreeEncoding = r.value(knownEncoding)
	if st := r.states[knownEncoding]; st != nil && st.kind == isSet {
		// git refuses to read such a file; no encoding has this name either.
		a.WorkingTreeEncoding = "true"
	}
	return a
}

func (r *resolution) value(k known) string {
	if st := r.states[k]; st != nil && st.kind == isValue {
		return st.value
	}
	return ""
}

func (r *resolution) text(k known) Text {
	st := r.states[k]
	switch {
	case st == nil || st.kind == isUnspecified:
		return TextUnspecified
	case st.kind == isSet:
		return TextSet
	case st.kind == isUnset:
		return TextUnset
	case st.value == "auto" || st.value == "input":
		return Text(st.value)
	}
	return TextUnspecified
}
