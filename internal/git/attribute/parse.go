package attribute

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git/wildmatch"
)

// Limits of git 2.39.1 (CVE-2022-23521): longer lines are skipped, larger
// files not read.
const (
	maxLine = 2048
	maxFile = 100 << 20
)

const blank = " \t\r\n"

// line sets the states of the files that a pattern matches.
type line struct {
	pattern wildmatch.Pattern
	states  []state
}

// state is what a line says about one attribute.
type state struct {
	name  string
	known known
	kind  stateKind
	value string // for isValue
}

type stateKind uint8

const (
	isSet         stateKind = iota // name
	isUnset                        // -name
	isUnspecified                  // !name
	isValue                        // name=value
)

// macros are attributes that set others when they are set, by name.
type macros map[string]macro

type macro struct {
	states []state
	index  int // 0 … len(macros)-1
}

// merge unites definitions; the last one of a name counts.
func merge(all ...macros) macros {
	united := macros{}
	for _, m := range all {
		maps.Copy(united, m)
	}
	for i, name := range slices.Sorted(maps.Keys(united)) {
		united[name] = macro{states: united[name].states, index: i}
	}
	return united
}

// parse reads the content of an attributes file. Every content is valid: git
// warns of a line it cannot use and goes on. Macros are returned separately;
// the caller drops them where none are allowed.
func parse(content []byte, fold bool) ([]line, macros) {
	if len(content) >= maxFile {
		return nil, nil
	}
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	var lines []line
	defined := macros{}
	for len(content) > 0 {
		var raw []byte
		raw, content, _ = bytes.Cut(content, []byte{'\n'})
		raw, _, _ = bytes.Cut(bytes.TrimSuffix(raw, []byte{'\r'}), []byte{0}) // git's lines are C strings
		text := strings.TrimLeft(string(raw), blank)
		if text == "" || text[0] == '#' || len(raw) >= maxLine {
			continue
		}
		pattern, rest := cutPattern(text)
		name, isMacro := cutMacro(pattern)
		states, ok := parseStates(rest)
		switch {
		case !ok || isMacro && !validName(name):
			continue
		case isMacro:
			defined[name] = macro{states: states}
			continue
		}
		p := wildmatch.Parse(pattern, fold)
		// Negative patterns are forbidden, and a pattern for directories only
		// matches no file.
		if !p.Negated && !p.DirOnly && len(states) > 0 {
			lines = append(lines, line{p, states})
		}
	}
	return lines, defined
}

// cutPattern splits off the first word, which may be quoted as in C.
func cutPattern(text string) (pattern, rest string) {
	if text[0] == '"' {
		if unquoted, rest, ok := unquote(text); ok {
			return unquoted, rest
		}
	}
	return cutWord(text)
}

func cutWord(text string) (word, rest string) {
	if i := strings.IndexAny(text, blank); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// cutMacro returns the name that "[attr]name" defines. A bare "[attr]" is an
// ordinary pattern.
func cutMacro(pattern string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(pattern, "[attr]")
	if !ok || rest == "" {
		return "", false
	}
	rest, _, _ = strings.Cut(rest, "\x00")
	name, _ = cutWord(strings.TrimLeft(rest, blank))
	return name, true
}

// parseStates reads the words after a pattern. One invalid name invalidates all.
func parseStates(text string) ([]state, bool) {
	var states []state
	for {
		text = strings.TrimLeft(text, blank)
		if text == "" {
			return states, true
		}
		var word string
		word, text = cutWord(text)
		st := state{name: word}
		name, value, hasValue := strings.Cut(word, "=")
		switch {
		case name != "" && name[0] == '-':
			st.kind, st.name = isUnset, name[1:]
		case name != "" && name[0] == '!':
			st.kind, st.name = isUnspecified, name[1:]
		case hasValue:
			st.kind, st.name, st.value = isValue, name, value
		}
		if !validName(st.name) {
			return nil, false
		}
		st.known = knownName(st.name)
		states = append(states, st)
	}
}

func validName(name string) bool {
	if name == "" || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return true
}

// unquote reads the string in double quotes at the start of text, with git's
// escapes: those of C without \x, octal with exactly three digits.
func unquote(text string) (unquoted, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		c := text[i]
		if c == '"' {
			return b.String(), text[i+1:], true
		}
		if c != '\\' {
			b.WriteByte(c)
			continue
		}
		if i++; i == len(text) {
			break
		}
		c = text[i]
		if e := strings.IndexByte(`abfnrtv\"`, c); e >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\\""[e])
			continue
		}
		if len(text) < i+3 || c > '3' || !octal(c) || !octal(text[i+1]) || !octal(text[i+2]) {
			break
		}
		b.WriteByte((c-'0')<<6 | (text[i+1]-'0')<<3 | (text[i+2] - '0'))
		i += 2
	}
	return "", "", false
}

func octal(c byte) bool { return '0' <= c && c <= '7' }
