package patch

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Append adds strings to the list at a path, in the existing style, and makes the list
// if it is missing, in the form that its table has. Nothing in the file is removed.
func (f *tomlFile) Append(path []string, items []string) ([]Splice, error) {
	now, there := f.Get(path...)
	list, ok := stringsOf(now)
	if there && !ok {
		return nil, fault.New(fault.Conflict, "%s is not a list", named(path))
	}
	missing := absent(list, items)
	if len(missing) == 0 {
		return nil, nil
	}
	want := clone(f.tree)
	if !put(want, path, Plain(slices.Concat(list, missing))) {
		return nil, fault.New(fault.Conflict, "something above %s is not a table", named(path))
	}
	changed := f
	var all []Splice
	for _, item := range missing { // mostly one
		t := changed.table(path)
		splices := t.add(path, item)
		content, err := Apply(changed.content, splices)
		if err != nil {
			return nil, err
		}
		if len(missing) == 1 {
			all = splices
			break
		}
		changed = &tomlFile{content: content, eol: f.eol}
	}
	if len(missing) > 1 {
		all = []Splice{between(f.content, changed.content)}
	}
	return f.checked(want, path, all)
}

// between returns the one splice that turns content into changed.
func between(content, changed []byte) Splice {
	at := 0
	for at < min(len(content), len(changed)) && content[at] == changed[at] {
		at++
	}
	same := 0
	for same < min(len(content), len(changed))-at && content[len(content)-1-same] == changed[len(changed)-1-same] {
		same++
	}
	return Splice{At: at, Old: string(content[at : len(content)-same]), New: string(changed[at : len(changed)-same])}
}

// table is the position of a table of a valid file, in any of its forms, and of
// a list in it. Offsets are -1 for missing parts.
type table struct {
	*tomlFile
	header   int    // end of the name in [name]
	key      int    // begin of the last key of the table
	last     int    // end of that key's value
	prefix   string // of its keys, outside a [name] or { }
	open     int    // of name = { }
	elements *elements
}

// elements is a list of strings: key = [ … ].
type elements struct {
	open, close int // of the brackets
	start, end  int // of the last element; -1 if there is none
	comma       int // after the last element; -1 if there is none
}

// table finds the table that holds the value at a path, and the list there.
func (f *tomlFile) table(path []string) table {
	t := table{tomlFile: f, header: -1, key: -1, last: -1, open: -1}
	name, list := path[:len(path)-1], path[len(path)-1]
	var parser unstable.Parser
	parser.Reset(f.content)
	var section []string
	for parser.NextExpression() {
		node := parser.Expression()
		if node.Kind == unstable.Comment {
			continue
		}
		keys := keysOf(node)
		whole := slices.Clone(section)
		for _, key := range keys {
			whole = append(whole, key.name)
		}
		switch {
		case node.Kind != unstable.KeyValue:
			section = whole[len(section):]
			if node.Kind == unstable.Table && slices.Equal(section, name) {
				t.header = keys[len(keys)-1].end
			}
		case slices.Equal(whole, name) && node.Value().Kind == unstable.InlineTable:
			t.open = t.after(keys[len(keys)-1].end)
			for pairs := node.Value().Children(); pairs.Next(); {
				t.pair(pairs.Node(), list)
			}
		case len(whole) > len(name) && len(section) <= len(name) && slices.Equal(whole[:len(name)], name):
			if above := len(name) - len(section); above > 0 {
				end := keys[above-1].end
				end += bytes.IndexByte(f.content[end:], '.') + 1
				t.prefix = string(f.content[keys[0].begin:end])
			}
			t.pair(node, list)
		}
	}
	return t
}

// key is one part of a name, and where it begins and ends.
type key struct {
	name       string
	begin, end int
}

func keysOf(node *unstable.Node) (keys []key) {
	for parts := node.Key(); parts.Next(); {
		raw := parts.Node().Raw
		keys = append(keys, key{string(parts.Node().Data), int(raw.Offset), int(raw.Offset + raw.Length)})
	}
	return keys
}

// after returns where the value after a key begins.
func (t *table) after(key int) int {
	rest := t.content[key:]
	return key + len(rest) - len(bytes.TrimLeft(rest, " \t="))
}

func (t *table) pair(node *unstable.Node, list string) {
	keys := keysOf(node)
	last := keys[len(keys)-1]
	t.key = keys[0].begin
	if value := node.Value(); value.Kind != unstable.Array {
		t.last = int(value.Raw.Offset + value.Raw.Length)
		return
	}
	found := t.list(node.Value(), t.after(last.end))
	t.last = found.close + 1
	if last.name == list {
		t.elements = &found
	}
}

// list reads a list of strings that opens at the offset.
func (t *table) list(node *unstable.Node, open int) elements {
	found := elements{open: open, start: -1, end: -1, comma: -1}
	at := open + 1
	for items := node.Children(); items.Next(); {
		raw := items.Node().Raw
		found.start, found.end = int(raw.Offset), int(raw.Offset+raw.Length)
		at = found.end
	}
	for ; t.content[at] != ']'; at++ {
		switch t.content[at] {
		case ',':
			found.comma = at
		case '#':
			at += bytes.IndexByte(t.content[at:], '\n')
		}
	}
	found.close = at
	return found
}

// add returns the splices that add one more string to the list.
func (t *table) add(path []string, item string) []Splice {
	line := tomlPath(path[len(path)-1:]) + " = [" + tomlText(item) + "]"
	switch {
	case t.elements != nil:
		return t.element(*t.elements, tomlText(item))
	case t.open >= 0 && t.last >= 0:
		return []Splice{{At: t.last, New: ", " + line}}
	case t.open >= 0 && t.content[t.open+1] == '}':
		return []Splice{{At: t.open + 1, New: " " + line + " "}}
	case t.open >= 0:
		return []Splice{{At: t.open + 1, New: " " + line}}
	case t.last >= 0:
		indent, _ := leading(t.content, t.key)
		return []Splice{{At: t.lineEnd(t.last), New: t.eol + indent + t.prefix + line}}
	case t.header >= 0:
		return []Splice{{At: t.lineEnd(t.header), New: t.eol + line}}
	}
	if len(path) == 1 {
		return []Splice{t.place(path, []string{item})}
	}
	return []Splice{t.section(path[:len(path)-1], line)}
}

// section puts a line into a new table at the end of the file, after a blank line.
func (t *table) section(name []string, line string) Splice {
	text := "[" + tomlPath(name) + "]" + t.eol + line + t.eol
	switch {
	case len(t.content) == 0 || bytes.HasSuffix(t.content, []byte("\n\n")) || bytes.HasSuffix(t.content, []byte("\n\r\n")):
	case t.content[len(t.content)-1] == '\n':
		text = t.eol + text
	default:
		text = t.eol + t.eol + text
	}
	return Splice{At: len(t.content), New: text}
}

// element puts one more string after the last of a list, in the list's style:
// on a line of its own if the last one begins a line.
func (t *table) element(l elements, item string) []Splice {
	if l.end < 0 {
		return t.first(l, item)
	}
	indent, alone := leading(t.content, l.start)
	if !alone {
		return []Splice{{At: l.end, New: ", " + item}}
	}
	comma := l.comma >= 0 && bytes.IndexByte(t.content[l.end:l.comma], '\n') < 0
	rest, line := l.end, t.lineEnd(l.end)
	if comma {
		rest = l.comma + 1
	}
	if behind := bytes.Trim(t.content[rest:line], " \t"); len(behind) > 0 && behind[0] != '#' {
		return []Splice{{At: l.end, New: "," + t.eol + indent + item}} // the bracket is on this line
	}
	// After the comment of the last element.
	if comma {
		return []Splice{{At: line, New: t.eol + indent + item + ","}}
	}
	return []Splice{{At: l.end, New: ","}, {At: line, New: t.eol + indent + item}}
}

// first puts a string into an empty list.
func (t *table) first(l elements, item string) []Splice {
	inside := t.content[l.open+1 : l.close]
	newline := bytes.LastIndexByte(inside, '\n')
	switch {
	case newline >= 0: // the bracket is alone on its line
		line := l.open + 1 + newline + 1
		indent := string(t.content[line:l.close])
		if step := "  "; strings.HasPrefix(indent, "\t") {
			indent += "\t"
		} else {
			indent += step
		}
		return []Splice{{At: line, New: indent + item + "," + t.eol}}
	case len(inside) > 0:
		return []Splice{{At: l.open + 1, New: " " + item}}
	}
	return []Splice{{At: l.open + 1, New: item}}
}

// lineEnd returns the end of the line that holds the offset, without its newline.
func (t *table) lineEnd(offset int) int {
	end := bytes.IndexByte(t.content[offset:], '\n')
	if end < 0 {
		return len(t.content)
	}
	end += offset
	if end > offset && t.content[end-1] == '\r' {
		end--
	}
	return end
}
