package patch

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// jsonFile is a JSON document; root is nil if the file is empty.
type jsonFile struct {
	content []byte
	root    *node
	eol     string
	unit    string // of indentation
}

func openJSON(content []byte) (Document, error) {
	root, err := readJSON(content)
	if err != nil {
		return nil, err
	}
	if root != nil && root.kind != '{' {
		return nil, wrong(content, root.start, "the file must hold an object, in { }")
	}
	f := &jsonFile{content: content, root: root, eol: lineEnd(content), unit: "  "}
	if root != nil && len(root.elements) > 0 {
		if blanks, only := leading(content, root.elements[0].start); only && blanks != "" {
			f.unit = blanks
		}
	}
	return f, nil
}

func (f *jsonFile) Empty() bool {
	return f.root == nil || len(f.root.elements) == 0 && !bytes.ContainsAny(f.content, "/")
}

func (f *jsonFile) Get(path ...string) (any, bool) {
	n := f.find(path)
	if n == nil {
		return nil, false
	}
	return n.plain(), true
}

func (f *jsonFile) Raw(path ...string) string {
	if n := f.find(path); n != nil {
		return string(f.content[n.start:n.end])
	}
	return ""
}

func (f *jsonFile) find(path []string) *node {
	n := f.root
	for _, key := range path {
		if n == nil {
			return nil
		}
		n = n.member(key)
	}
	return n
}

// holder walks down a path as far as it exists.
func (f *jsonFile) holder(path []string) (n *node, rest []string, err error) {
	n = f.root
	for i, key := range path {
		if n.kind != '{' {
			return nil, nil, fault.New(fault.Conflict, "%s is not an object", named(path[:i]))
		}
		if n.count(key) > 1 {
			return nil, nil, wrong(f.content, n.start, "%s stands here more than once", named(path[:i+1]))
		}
		next := n.member(key)
		if next == nil {
			return n, path[i:], nil
		}
		n = next
	}
	return n, nil, nil
}

func (f *jsonFile) Set(path []string, value any) ([]Splice, error) {
	if f.root == nil {
		text := f.render(nested(path, value), "", true)
		if len(f.content) == 0 {
			return []Splice{{New: text + f.eol}}, nil
		}
		if f.content[len(f.content)-1] != '\n' && bytes.ContainsAny(f.content, "/") {
			text = f.eol + text // after a comment
		}
		return []Splice{{At: len(f.content), New: text}}, nil
	}
	holder, rest, err := f.holder(path)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return f.insert(holder, []Object{{{rest[0], nested(rest[1:], value)}}}), nil
	case Same(holder.plain(), value):
		return nil, nil
	}
	blanks := f.indentOf(holder.start)
	multi := bytes.Contains(f.content[f.root.start:f.root.end], []byte("\n"))
	return []Splice{{holder.start, string(f.content[holder.start:holder.end]), f.render(value, blanks, multi)}}, nil
}

func (f *jsonFile) Append(path []string, items []string) ([]Splice, error) {
	n := f.find(path)
	if n == nil {
		return f.Set(path, items)
	}
	list, ok := stringsOf(n.plain())
	if !ok {
		return nil, fault.New(fault.Conflict, "%s is not a list", named(path))
	}
	missing := absent(list, items)
	if len(missing) == 0 {
		return nil, nil
	}
	var elements []Object
	for _, item := range missing {
		elements = append(elements, Object{{"", item}})
	}
	return f.insert(n, elements), nil
}

func (f *jsonFile) Remove(path []string) ([]Splice, error) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		holder := f.find(path[:len(path)-1])
		if holder == nil || holder.member(path[len(path)-1]) == nil {
			return nil, nil
		}
		if len(holder.elements) > 1 || len(path) == 1 {
			key := path[len(path)-1]
			return f.cut(holder, func(e element) bool { return e.key == key }), nil
		}
	}
	return nil, nil
}

func (f *jsonFile) Drop(path []string, items []string) ([]Splice, error) {
	n := f.find(path)
	if n == nil || n.kind != '[' {
		return nil, nil
	}
	gone := func(e element) bool {
		text, ok := e.value.plain().(string)
		return ok && len(absent([]string{text}, items)) < len(items)
	}
	left := 0
	for _, e := range n.elements {
		if !gone(e) {
			left++
		}
	}
	switch left {
	case len(n.elements):
		return nil, nil
	case 0:
		return f.Remove(path)
	}
	return f.cut(n, gone), nil
}

// nested wraps a value into the objects of a path.
func nested(path []string, value any) any {
	for i := len(path) - 1; i >= 0; i-- {
		value = Object{{path[i], value}}
	}
	return value
}

// indentOf returns the indentation of the line that holds an offset.
func (f *jsonFile) indentOf(at int) string {
	line := f.content[lineStart(f.content, at):]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// render writes a value; lines after its first are indented.
func (f *jsonFile) render(value any, indent string, multi bool) string {
	switch v := value.(type) {
	case Raw:
		return string(v)
	case Object:
		return f.enclose("{", "}", len(v), indent, multi && len(v) > 0, func(i int, indent string) string {
			return quote(v[i].Key) + ": " + f.render(v[i].Value, indent, multi)
		})
	case []string:
		return f.enclose("[", "]", len(v), indent, multi && len(v) > 4, func(i int, _ string) string { return quote(v[i]) })
	case string:
		return quote(v)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "null"
	}
	return string(text)
}

func (f *jsonFile) enclose(open, closing string, n int, indent string, multi bool, item func(i int, indent string) string) string {
	var b strings.Builder
	b.WriteString(open)
	for i := range n {
		switch {
		case i > 0 && multi:
			b.WriteString(",")
		case i > 0:
			b.WriteString(", ")
		}
		if multi {
			b.WriteString(f.eol + indent + f.unit)
		}
		b.WriteString(item(i, indent+f.unit))
	}
	if multi {
		b.WriteString(f.eol + indent)
	}
	b.WriteString(closing)
	return b.String()
}

// quote returns a JSON string as people write it.
func quote(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
