package config

import (
	"bytes"
	"sort"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// shape is the type of a value, as errors name it.
type shape string

const (
	text    shape = "a string"
	list    shape = "a list"
	table   shape = "a table"
	boolean shape = "a boolean"
	number  shape = "a number"
	// quantity is the shape of a key that takes a number or a string.
	quantity shape = "a number or a string"
	date     shape = "a date"
)

// wanted is the shape as a key demands it.
func (s shape) wanted() string {
	switch s {
	case list, table:
		return string(s) + " of strings"
	case boolean:
		return "true or false"
	}
	return string(s)
}

// position in a file, both from 1, the column in bytes.
type position struct{ line, column int }

// value is a TOML value with its place.
type value struct {
	position
	shape shape
	text  string
	truth bool
	items []value // elements of a list, or entries of a table
	name  string  // of an entry
}

func (v value) texts() []string {
	texts := make([]string, 0, len(v.items))
	for _, item := range v.items {
		texts = append(texts, item.text)
	}
	return texts
}

// place finds the line and column of an offset. A large file asks for
// thousands, so the lines are counted once.
func (r *reader) place(offset uint32) position {
	line := sort.Search(len(r.lines), func(i int) bool { return r.lines[i] > offset })
	return position{line, int(offset-r.lines[line-1]) + 1}
}

// lineStarts lists the offset of every line's first byte.
func lineStarts(content []byte) []uint32 {
	starts := []uint32{0}
	for i, c := range content {
		if c == '\n' {
			starts = append(starts, uint32(i+1))
		}
	}
	return starts
}

// path is the key of a node below another, and where it begins.
func (r *reader) path(below []string, node *unstable.Node) ([]string, position) {
	path := append([]string(nil), below...)
	var at position
	for parts := node.Key(); parts.Next(); {
		if at == (position{}) {
			at = r.place(parts.Node().Raw.Offset)
		}
		path = append(path, string(parts.Node().Data))
	}
	return path, at
}

// valueStart finds the place of the value of key = value, which the parser does not
// keep for arrays: only blanks and the sign can follow the last part of the key.
func (r *reader) valueStart(node *unstable.Node) position {
	var last *unstable.Node
	for parts := node.Key(); parts.Next(); {
		last = parts.Node()
	}
	end := last.Raw.Offset + last.Raw.Length
	rest := r.parser.Data()[end:]
	blanks := len(rest) - len(bytes.TrimLeft(rest, " \t="))
	return r.place(end + uint32(blanks))
}

// value turns a node into a value. at is where it begins.
func (r *reader) value(node *unstable.Node, at position) value {
	v := value{position: at}
	switch node.Kind {
	case unstable.String:
		v.shape, v.text = text, string(node.Data)
	case unstable.Bool:
		v.shape, v.truth = boolean, string(node.Data) == "true"
	case unstable.Integer, unstable.Float:
		v.shape, v.text = number, string(node.Data)
	case unstable.Array:
		v.shape = list
		for children := node.Children(); children.Next(); {
			child := children.Node()
			start := at // the parser keeps no place for a list in a list
			if child.Raw.Length > 0 {
				start = r.place(child.Raw.Offset)
			}
			v.items = append(v.items, r.element(child, start))
		}
	case unstable.InlineTable:
		v.shape = table
		for children := node.Children(); children.Next(); {
			child := children.Node()
			path, at := r.path(nil, child)
			entry := r.element(child.Value(), r.valueStart(child))
			if len(path) > 1 { // a.b = … inside: a is a table
				entry = value{position: entry.position, shape: table}
			}
			entry.name = path[0]
			if entry.shape == text {
				entry.position = at
			}
			v.items = append(v.items, entry)
		}
	default:
		v.shape = date
	}
	return v
}

// element is a value whose inside is never read: no key has lists or tables in
// lists or tables, and a hostile file nests them thousands deep.
func (r *reader) element(node *unstable.Node, at position) value {
	switch node.Kind {
	case unstable.Array:
		return value{position: at, shape: list}
	case unstable.InlineTable:
		return value{position: at, shape: table}
	}
	return r.value(node, at)
}

// dotted writes a path as TOML does. A part that needs quotes gets them, so
// that "a.b" in one part is not taken for two.
func dotted(path []string) string {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = part
		bare := strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
		if part == "" || !bare {
			parts[i] = strconv.QuoteToASCII(part)
		}
	}
	return strings.Join(parts, ".")
}

// exampleOf shows how to write a string where a list belongs.
func exampleOf(key key, given value) string {
	if key.shape != list || given.shape != text {
		return ""
	}
	name := key.Name[strings.LastIndexByte(key.Name, '.')+1:]
	quoted := strconv.QuoteToASCII(given.text)
	if strings.ContainsAny(given.text, " \t\n") {
		return name + ` = ["sh", "-c", ` + quoted + "]"
	}
	return name + " = [" + quoted + "]"
}
