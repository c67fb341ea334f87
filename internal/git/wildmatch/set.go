package wildmatch

import "strings"

// set holds the bytes that a bracket expression accepts.
type set [256 / 64]uint64

func (s *set) add(c byte)      { s[c/64] |= 1 << (c % 64) }
func (s *set) has(c byte) bool { return s[c/64]&(1<<(c%64)) != 0 }

func (s *set) addIf(member func(byte) bool) {
	for c := range 256 {
		if member(byte(c)) {
			s.add(byte(c))
		}
	}
}

func (s *set) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// parseSet reads a bracket expression whose '[' stands before glob[i], and
// returns the position after its ']'. The set is nil where git gives up: no
// end, or a class name that does not exist.
//
// With Fold the set is asked for lower case letters only. git then widens
// ranges and [:upper:], but not single letters: [A] matches nothing there.
func parseSet(glob string, i int, mode Mode) (*set, int) {
	at := func(i int) byte {
		if i < len(glob) {
			return glob[i]
		}
		return 0 // like the NUL after a C string; a glob holds none itself
	}
	s := new(set)
	negated := at(i) == '!' || at(i) == '^'
	if negated {
		i++
	}
	var low byte // what a following '-' starts from; 0 for nothing
	for first := true; first || at(i) != ']'; first = false {
		switch c := at(i); {
		case c == 0:
			return nil, 0
		case c == '-' && low != 0 && at(i+1) != 0 && at(i+1) != ']':
			i++
			if at(i) == '\\' {
				i++
			}
			high := at(i)
			if high == 0 {
				return nil, 0
			}
			s.addRange(low, high, mode.Fold)
			low = 0
		case c == '[' && at(i+1) == ':':
			end := strings.IndexByte(glob[i+2:], ']')
			if end < 0 {
				return nil, 0
			}
			name, closed := strings.CutSuffix(glob[i+2:i+2+end], ":")
			if !closed {
				s.add('[')
				low = '['
				break
			}
			member := class(name, mode.Fold)
			if member == nil {
				return nil, 0
			}
			s.addIf(member)
			low = 0
			i += 2 + end
		default:
			if c == '\\' {
				i++
				if c = at(i); c == 0 {
					return nil, 0
				}
			}
			s.add(c)
			low = c
		}
		i++
	}
	if negated {
		s.invert()
	}
	if mode.Path {
		s['/'/64] &^= 1 << ('/' % 64)
	}
	return s, i + 1
}

func (s *set) addRange(low, high byte, fold bool) {
	s.addIf(func(c byte) bool {
		if low <= c && c <= high {
			return true
		}
		return fold && isLower(c) && low <= upper(c) && upper(c) <= high
	})
}

// class returns the members of a POSIX class as in git's own ctype table, where
// vertical tab and form feed are not space. It is nil for a name that does not exist.
func class(name string, fold bool) func(byte) bool {
	switch name {
	case "alnum":
		return func(c byte) bool { return isAlpha(c) || isDigit(c) }
	case "alpha":
		return isAlpha
	case "blank":
		return func(c byte) bool { return c == ' ' || c == '\t' }
	case "cntrl":
		return func(c byte) bool { return c < ' ' || c == 0x7f }
	case "digit":
		return isDigit
	case "graph":
		return func(c byte) bool { return ' ' < c && c < 0x7f }
	case "lower":
		return isLower
	case "print":
		return func(c byte) bool { return ' ' <= c && c < 0x7f }
	case "punct":
		return func(c byte) bool { return ' ' < c && c < 0x7f && !isAlpha(c) && !isDigit(c) }
	case "space":
		return func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
	case "upper":
		return func(c byte) bool { return isUpper(c) || fold && isLower(c) }
	case "xdigit":
		return func(c byte) bool { return isDigit(c) || 'a' <= lower(c) && lower(c) <= 'f' }
	}
	return nil
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isAlpha(c byte) bool { return isUpper(c) || isLower(c) }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func lower(c byte) byte {
	if isUpper(c) {
		return c + 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if isLower(c) {
		return c - 'a' + 'A'
	}
	return c
}
