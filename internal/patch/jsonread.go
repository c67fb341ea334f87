package patch

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// node is a value and its position.
type node struct {
	kind       byte // its first byte, 0 for a number
	start, end int
	value      any       // of values other than { and [
	elements   []element // of { and [
}

// element is a member of an object, or an item of a list, which has no key.
type element struct {
	key   string
	start int // of the key, or the value
	value *node
	comma int // after it; -1 if there is none
}

// member finds a key; the last one counts, as for the readers of the file.
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

// plain returns the value as encoding/json gives it.
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

// deepest is how deep objects and lists may nest: a settings file has a
// handful of levels, and a hostile one must not use up the stack.
const deepest = 200

// readJSON reads a file; nil if it has only blanks and comments.
func readJSON(content []byte) (*node, error) {
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, wrong(content, i, "this is not UTF-8 text")
		}
		i += size
	}
	// A byte order mark, which editors on Windows write, counts as a blank. A
	// comment may end with the file: the library wants a newline.
	text := bytes.Clone(content)
	if bytes.Contains(text[lineStart(text, len(text)):], []byte("//")) {
		text = append(text, '\n')
	}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		copy(text, "   ")
	}
	if at := tooDeep(text); at >= 0 {
		return nil, wrong(content, at, "more than %d objects and lists stand in each other", deepest)
	}
	root, err := hujson.Parse(text)
	if root.Value == nil && len(root.BeforeExtra) == len(text) {
		return nil, nil
	}
	if err != nil {
		// The file's content is not repeated.
		said, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "hujson: "), "invalid literal: ")
		if strings.HasSuffix(said, ": ") {
			said += "this is not a JSON value"
		}
		return nil, fault.New(fault.Invalid, "%s", said)
	}
	return located(root), nil
}

// located returns a read value with its position.
func located(v hujson.Value) *node {
	n := &node{kind: byte(v.Value.Kind()), start: v.StartOffset, end: v.EndOffset}
	switch held := v.Value.(type) {
	case *hujson.Object:
		for i, m := range held.Members {
			comma := i < len(held.Members)-1 || m.Value.AfterExtra != nil
			n.add(element{key: m.Name.Value.(hujson.Literal).String(), start: m.Name.StartOffset, value: located(m.Value)}, m.Value, comma)
		}
	case *hujson.Array:
		for i, e := range held.Elements {
			comma := i < len(held.Elements)-1 || e.AfterExtra != nil
			n.add(element{start: e.StartOffset, value: located(e)}, e, comma)
		}
	case hujson.Literal:
		if json.Unmarshal(held, &n.value) != nil {
			n.value = held.String()
		}
	}
	return n
}

// add appends an element, which a comma may follow.
func (n *node) add(e element, v hujson.Value, comma bool) {
	e.comma = -1
	if comma {
		e.comma = v.EndOffset + len(v.AfterExtra)
	}
	n.elements = append(n.elements, e)
}

// tooDeep returns where objects and lists nest deeper than allowed; -1 if they
// do not. The library reads them by recursion and has no limit.
func tooDeep(content []byte) int {
	depth := 0
	for at := 0; at < len(content); at++ {
		switch c := content[at]; {
		case c == '{' || c == '[':
			if depth++; depth > deepest {
				return at
			}
		case c == '}' || c == ']':
			depth--
		case c == '"':
			at = behindString(content, at) - 1
		case c == '/':
			if end := behindComment(content, at); end > at {
				at = end - 1
			}
		}
	}
	return -1
}

// behindString returns the offset after the string that begins at at.
func behindString(content []byte, at int) int {
	for at++; at < len(content) && content[at] != '"'; at++ {
		if content[at] == '\\' {
			at++
		}
	}
	return min(at+1, len(content))
}

// behindComment returns the offset after the comment that begins at at, before
// the end of its line; at itself if none begins there.
func behindComment(content []byte, at int) int {
	rest := content[at:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		return at + len(bytes.TrimSuffix(line, []byte("\r")))
	case bytes.HasPrefix(rest, []byte("/*")):
		if end := bytes.Index(rest[2:], []byte("*/")); end >= 0 {
			return at + end + 4
		}
	}
	return at
}
