package patch

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// node is a value and where it stands.
type node struct {
	kind       byte // { [ " or v, which is anything else
	start, end int
	value      any       // of a string or v
	elements   []element // of { and [
}

// element is a member of an object, or an item of a list, which has no key.
type element struct {
	key   string
	start int // of the key, or the value
	value *node
	comma int // behind it; -1 when there is none
}

// member finds a key; the last one counts, as for those who read the file.
func (n *node) member(key string) *node {
	if n.kind != '{' {
		return nil
	}
	for i := len(n.elements) - 1; i >= 0; i-- {
		if n.elements[i].key == key {
			return n.elements[i].value
		}
	}
	return nil
}

func (n *node) count(key string) (times int) {
	for _, e := range n.elements {
		if e.key == key {
			times++
		}
	}
	return times
}

// plain is the value as encoding/json gives it.
func (n *node) plain() any {
	switch n.kind {
	case '{':
		object := map[string]any{}
		for _, e := range n.elements {
			object[e.key] = e.value.plain()
		}
		return object
	case '[':
		list := []any{}
		for _, e := range n.elements {
			list = append(list, e.value.plain())
		}
		return list
	}
	return n.value
}

// deepest is how many objects and lists may stand in each other: a settings
// file has a handful, and a hostile one must not use up the stack.
const deepest = 200

// scanner reads JSON with comments and trailing commas.
type scanner struct {
	content []byte
	at      int
	depth   int
}

// readJSON reads a file; nil when there is nothing in it but blanks and
// comments.
func readJSON(content []byte) (*node, error) {
	s := &scanner{content: content}
	if bytes.HasPrefix(content, []byte("\xef\xbb\xbf")) {
		s.at = 3 // a byte order mark, which editors on Windows write
	}
	if !utf8.Valid(content) {
		for i := 0; i < len(content); {
			r, size := utf8.DecodeRune(content[i:])
			if r == utf8.RuneError && size == 1 {
				return nil, wrong(content, i, "this is no UTF-8 text")
			}
			i += size
		}
	}
	if err := s.skip(); err != nil || s.at == len(content) {
		return nil, err
	}
	root, err := s.read()
	if err != nil {
		return nil, err
	}
	if err := s.skip(); err != nil {
		return nil, err
	}
	if s.at < len(content) {
		return nil, wrong(content, s.at, "the file goes on behind its end")
	}
	return root, nil
}

// skip goes over blanks and comments.
func (s *scanner) skip() error {
	for s.at < len(s.content) {
		switch s.content[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		case '/':
			if err := s.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// comment goes over one; a line's own ends before the newline.
func (s *scanner) comment() error {
	rest := s.content[s.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			s.at += end
		} else {
			s.at = len(s.content)
		}
		if s.content[s.at-1] == '\r' && s.at < len(s.content) {
			s.at--
		}
		return nil
	case bytes.HasPrefix(rest, []byte("/*")):
		if end := bytes.Index(rest[2:], []byte("*/")); end >= 0 {
			s.at += end + 4
			return nil
		}
		return wrong(s.content, s.at, "this comment has no end")
	}
	return wrong(s.content, s.at, "a value must stand here")
}

func (s *scanner) read() (*node, error) {
	if s.at == len(s.content) {
		return nil, wrong(s.content, s.at, "the file ends where a value must stand")
	}
	switch s.content[s.at] {
	case '{':
		return s.enclosed('{', '}')
	case '[':
		return s.enclosed('[', ']')
	case '"':
		n := &node{kind: '"', start: s.at}
		text, err := s.text()
		n.value, n.end = text, s.at
		return n, err
	}
	n := &node{kind: 'v', start: s.at}
	end := bytes.IndexAny(s.content[s.at:], " \t\r\n,:]}/\"[{")
	if end < 0 {
		end = len(s.content) - s.at
	}
	s.at += end
	n.end = s.at
	if end == 0 || json.Unmarshal(s.content[n.start:n.end], &n.value) != nil {
		return nil, wrong(s.content, n.start, "a value must stand here")
	}
	return n, nil
}

// text reads a string.
func (s *scanner) text() (string, error) {
	start := s.at
	for s.at++; s.at < len(s.content); s.at++ {
		switch s.content[s.at] {
		case '\\':
			s.at++
		case '\n':
			return "", wrong(s.content, start, "this string does not end on its line")
		case '"':
			s.at++
			var text string
			if err := json.Unmarshal(s.content[start:s.at], &text); err != nil {
				return "", wrong(s.content, start, "this is no string of JSON")
			}
			return text, nil
		}
	}
	s.at = len(s.content)
	return "", wrong(s.content, start, "this string has no end")
}

// enclosed reads an object or a list.
func (s *scanner) enclosed(open, closing byte) (*node, error) {
	if s.depth++; s.depth > deepest {
		return nil, wrong(s.content, s.at, "more than %d objects and lists stand in each other", deepest)
	}
	defer func() { s.depth-- }()
	n := &node{kind: open, start: s.at}
	for s.at++; ; {
		if err := s.skip(); err != nil {
			return nil, err
		}
		if s.at == len(s.content) {
			return nil, wrong(s.content, n.start, "this %c has no %c", open, closing)
		}
		if s.content[s.at] == closing {
			s.at++
			n.end = s.at
			return n, nil
		}
		if last := len(n.elements) - 1; last >= 0 && n.elements[last].comma < 0 {
			if s.content[s.at] != ',' {
				return nil, wrong(s.content, s.at, "a comma or %c must stand here", closing)
			}
			n.elements[last].comma = s.at
			s.at++
			continue
		}
		e, err := s.element(open)
		if err != nil {
			return nil, err
		}
		n.elements = append(n.elements, e)
	}
}

func (s *scanner) element(open byte) (e element, err error) {
	e = element{start: s.at, comma: -1}
	if open == '{' {
		if s.content[s.at] != '"' {
			return e, wrong(s.content, s.at, "a key must stand here, in quotation marks")
		}
		if e.key, err = s.text(); err != nil {
			return e, err
		}
		if err := s.skip(); err != nil {
			return e, err
		}
		if s.at == len(s.content) || s.content[s.at] != ':' {
			return e, wrong(s.content, s.at, "a colon must stand here")
		}
		s.at++
		if err := s.skip(); err != nil {
			return e, err
		}
	}
	e.value, err = s.read()
	return e, err
}
