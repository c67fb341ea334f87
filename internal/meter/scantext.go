package meter

import (
	"unicode/utf16"
	"unicode/utf8"
)

func (s *scanner) keep(c byte) {
	if len(s.text) <= maxText { // one more than is given shows that it was cut
		s.text = append(s.text, c)
	}
}

func (s *scanner) keepRune(r rune) {
	if len(s.text) <= maxText {
		s.text = utf8.AppendRune(s.text, r)
	}
}

func (s *scanner) inText(c byte) {
	switch {
	case s.escape == 1:
		s.escape = 0
		switch c {
		case 'u':
			s.escape, s.unit = 2, 0
			return
		case '"', '\\', '/':
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		default:
			s.fail()
			return
		}
		s.unpaired()
		s.keep(c)
	case s.escape >= 2:
		digit, ok := hexDigit(c)
		if !ok {
			s.fail()
			return
		}
		s.unit = s.unit<<4 | digit
		if s.escape++; s.escape > 5 {
			s.escape = 0
			s.unitDone()
		}
	case c == '\\':
		s.escape = 1
	case c == '"':
		s.unpaired()
		s.textDone()
	case c < ' ':
		s.fail()
	default:
		s.unpaired()
		s.keep(c)
	}
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0'), true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10, true
	}
	return 0, false
}

func (s *scanner) unitDone() {
	if s.high != 0 {
		if r := utf16.DecodeRune(s.high, s.unit); r != utf8.RuneError {
			s.high = 0
			s.keepRune(r)
			return
		}
		s.unpaired()
	}
	if s.unit >= 0xd800 && s.unit < 0xdc00 {
		s.high = s.unit
		return
	}
	s.keepRune(s.unit)
}

// unpaired ends a first half that no second one followed.
func (s *scanner) unpaired() {
	if s.high != 0 {
		s.high = 0
		s.keepRune(utf8.RuneError)
	}
}

func (s *scanner) textDone() {
	if !s.key {
		text, cut := s.text, false
		if len(text) > maxText {
			text, cut = text[:maxText], true
		}
		s.give(scalar{text: string(text), kind: '"', cut: cut})
		return
	}
	if len(s.stack) <= maxNamed {
		name := s.text
		if len(name) > maxName {
			name = name[:maxName]
		}
		s.path[len(s.path)-1] = string(name)
	}
	if s.name != nil {
		s.name(s.path, len(s.stack))
	}
	s.state = wantColon
}
