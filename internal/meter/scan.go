package meter

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Bounds of a scanner's memory, for any input.
const (
	maxDepth = 512 // of nesting; deeper is an error
	maxNamed = 8   // levels of which the names are known
	maxName  = 64  // bytes of a name; a longer one is cut, and so is unknown
	maxText  = 256 // bytes of a string or number
)

// errJSON is the error for input that is not JSON (RFC 8259).
var errJSON = errors.New("it is not JSON")

// scanner reads one JSON text in any pieces and reports the names and the
// values in it. It holds a part of one string at most.
type scanner struct {
	// name is called for each name of an object, with the path to it; value for
	// each string, number and literal. Elements of a list have the name "".
	// A path is cut to maxNamed names, and deep says how many it has.
	name  func(path []string, deep int)
	value func(path []string, deep int, v scalar)

	stack []byte   // '{' or '[' for each level
	path  []string // names of the first levels
	state state
	key   bool // the string is a name

	text    []byte
	escape  int // 0 none, 1 after a backslash, 2 to 5 in \u
	unit    rune
	high    rune // the first half of a pair
	literal string
	err     error
}

// scalar is a value that is neither object nor list. Text is cut to maxText.
type scalar struct {
	text string
	kind byte // '"' string, '0' number, 't' true, 'f' false, 'n' null
	cut  bool
}

// integer is the number of a scalar as a count: none is below zero, and none
// above maxTokens.
func (s scalar) integer() int64 {
	if s.kind != '0' || s.cut {
		return 0
	}
	n, err := strconv.ParseFloat(s.text, 64)
	switch {
	case err != nil && n == 0, n != n, n <= 0:
		return 0
	case n >= maxTokens:
		return maxTokens
	}
	return int64(n)
}

// maxClaim bounds what one call may say that it has cost.
const maxClaim = 10_000 * Dollar

// money is the number of a scalar as an amount, of units worth that many dollars.
func (s scalar) money(unit float64) Money {
	if unit == 0 || s.kind != '0' || s.cut {
		return 0
	}
	n, _ := strconv.ParseFloat(s.text, 64) // beyond the largest it is infinite
	n = math.Ceil(n * unit * float64(Dollar))
	switch {
	case n != n, n <= 0:
		return 0
	case n >= float64(maxClaim):
		return maxClaim
	}
	return Money(n)
}

type state int

const (
	wantValue state = iota
	wantFirst       // a value, or the end of the list
	wantName
	wantFirstName // or the end of the object
	wantColon
	wantNext // a comma, or the end
	inText
	inNumber
	inLiteral
	done
)

func (s *scanner) reset() {
	*s = scanner{name: s.name, value: s.value, stack: s.stack[:0], path: s.path[:0], text: s.text[:0]}
}

// write feeds bytes. After an error it does nothing more.
func (s *scanner) write(p []byte) error {
	for len(p) > 0 && s.err == nil {
		if s.state == inText && s.escape == 0 && s.high == 0 { // most bytes
			n := 0
			for n < len(p) && p[n] != '"' && p[n] != '\\' && p[n] >= ' ' {
				n++
			}
			s.text = append(s.text, p[:min(n, max(0, maxText+1-len(s.text)))]...)
			if p = p[n:]; len(p) == 0 {
				break
			}
		}
		s.step(p[0])
		p = p[1:]
	}
	return s.err
}

// end reports whether the input was one whole JSON text.
func (s *scanner) end() error {
	if s.err == nil && s.state == inNumber && len(s.stack) == 0 {
		s.number()
	}
	if s.err == nil && s.state != done {
		s.err = errJSON
	}
	return s.err
}

func (s *scanner) fail() { s.err = errJSON }

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func (s *scanner) step(c byte) {
	switch s.state {
	case inText:
		s.inText(c)
		return
	case inLiteral:
		if s.literal == "" || s.literal[0] != c {
			s.fail()
			return
		}
		if s.literal = s.literal[1:]; s.literal == "" {
			s.give(scalar{text: "", kind: s.text[0]})
		}
		return
	case inNumber:
		if c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-' {
			s.keep(c)
			return
		}
		if s.number(); s.err != nil {
			return
		}
		s.step(c)
		return
	}
	if blank(c) {
		return
	}
	switch s.state {
	case wantFirst, wantValue:
		if c == ']' && s.state == wantFirst {
			s.pop('[')
			return
		}
		s.begin(c)
	case wantFirstName, wantName:
		switch {
		case c == '}' && s.state == wantFirstName:
			s.pop('{')
		case c == '"':
			s.state, s.key, s.text = inText, true, s.text[:0]
		default:
			s.fail()
		}
	case wantColon:
		if c != ':' {
			s.fail()
			return
		}
		s.state = wantValue
	case wantNext:
		switch c {
		case ',':
			s.state = wantValue
			if s.stack[len(s.stack)-1] == '{' {
				s.state = wantName
			}
		case '}':
			s.pop('{')
		case ']':
			s.pop('[')
		default:
			s.fail()
		}
	default: // done
		s.fail()
	}
}

func (s *scanner) begin(c byte) {
	switch {
	case c == '{', c == '[':
		if len(s.stack) >= maxDepth {
			s.fail()
			return
		}
		s.stack = append(s.stack, c)
		if len(s.path) < maxNamed {
			s.path = append(s.path, "")
		}
		if s.state = wantFirst; c == '{' {
			s.state = wantFirstName
		}
	case c == '"':
		s.state, s.key, s.text = inText, false, s.text[:0]
	case c == '-' || c >= '0' && c <= '9':
		s.state, s.text = inNumber, append(s.text[:0], c)
	case c == 't':
		s.state, s.literal, s.text = inLiteral, "rue", append(s.text[:0], 't')
	case c == 'f':
		s.state, s.literal, s.text = inLiteral, "alse", append(s.text[:0], 'f')
	case c == 'n':
		s.state, s.literal, s.text = inLiteral, "ull", append(s.text[:0], 'n')
	default:
		s.fail()
	}
}

func (s *scanner) pop(kind byte) {
	if len(s.stack) == 0 || s.stack[len(s.stack)-1] != kind {
		s.fail()
		return
	}
	s.stack = s.stack[:len(s.stack)-1]
	if len(s.stack) < len(s.path) {
		s.path = s.path[:len(s.stack)]
	}
	s.next()
}

// next is the state after a value.
func (s *scanner) next() {
	if s.state = wantNext; len(s.stack) == 0 {
		s.state = done
	}
}

func (s *scanner) give(v scalar) {
	if s.value != nil {
		s.value(s.path, len(s.stack), v)
	}
	s.next()
}

func (s *scanner) number() {
	text := string(s.text)
	cut := len(s.text) > maxText
	if !cut && !validNumber(text) {
		s.fail()
		return
	}
	s.give(scalar{text: text, kind: '0', cut: cut})
}

// validNumber is the grammar of RFC 8259, section 6.
func validNumber(text string) bool {
	rest := strings.TrimPrefix(text, "-")
	digits := func() int {
		n := 0
		for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		return n
	}
	n := digits()
	if n == 0 || n > 1 && rest[0] == '0' {
		return false
	}
	rest = rest[n:]
	if after, ok := strings.CutPrefix(rest, "."); ok {
		rest = after
		if n = digits(); n == 0 {
			return false
		}
		rest = rest[n:]
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		if rest = rest[1:]; rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		if n = digits(); n == 0 {
			return false
		}
		rest = rest[n:]
	}
	return rest == ""
}
