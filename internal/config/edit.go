package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// insertion is text that comes into a file at an offset. A file is changed by
// insertions alone, so that everything in it stays as the human wrote it.
type insertion struct {
	offset int
	text   string
}

func insert(content []byte, insertions []insertion) []byte {
	var changed []byte
	done := 0
	for _, one := range insertions { // in the order of their offsets
		changed = append(changed, content[done:one.offset]...)
		changed = append(changed, one.text...)
		done = one.offset
	}
	return append(changed, content[done:]...)
}

// network is where the [network] section of a valid file stands, in whichever
// of its forms. Offsets are -1 where there is no such thing.
type network struct {
	content  []byte
	eol      string
	header   int    // end of the name in [network]
	key      int    // begin of the last key of the section
	end      int    // end of that key's value
	prefix   string // of its keys, outside a [network] or { }
	open     int    // of network = { }
	elements *elements
}

// elements is a list of strings: key = [ … ].
type elements struct {
	open, close int // of the brackets
	start, end  int // of the last element; -1 when there is none
	comma       int // behind the last element; -1 when there is none
}

// locate finds the section, and in it the list.
func locate(content []byte, list string) network {
	n := network{content: content, eol: "\n", header: -1, key: -1, end: -1, open: -1}
	if i := bytes.IndexByte(content, '\n'); i > 0 && content[i-1] == '\r' {
		n.eol = "\r\n"
	}
	var parser unstable.Parser
	parser.Reset(content)
	var section []string
	for parser.NextExpression() {
		node := parser.Expression()
		switch path, begin, end := names(node); {
		case node.Kind != unstable.KeyValue:
			if section = path; slices.Equal(path, []string{"network"}) {
				n.header = end
			}
		case len(section) == 0 && len(path) == 1 && path[0] == "network":
			n.open = n.after(end)
			for pairs := node.Value().Children(); pairs.Next(); {
				n.pair(pairs.Node(), list)
			}
		case len(section) == 0 && path[0] == "network":
			n.prefix = string(content[begin:end])
			n.prefix = n.prefix[:strings.IndexByte(n.prefix, '.')+1]
			n.pair(node, list)
		case slices.Equal(section, []string{"network"}):
			n.pair(node, list)
		}
	}
	return n
}

// names is the key of a node, and where it begins and ends.
func names(node *unstable.Node) (path []string, begin, end int) {
	for parts := node.Key(); parts.Next(); {
		raw := parts.Node().Raw
		if path == nil {
			begin = int(raw.Offset)
		}
		path, end = append(path, string(parts.Node().Data)), int(raw.Offset+raw.Length)
	}
	return path, begin, end
}

// after is where the value behind a key begins.
func (n *network) after(key int) int {
	rest := n.content[key:]
	return key + len(rest) - len(bytes.TrimLeft(rest, " \t="))
}

func (n *network) pair(node *unstable.Node, list string) {
	path, begin, end := names(node)
	n.key = begin
	if value := node.Value(); value.Kind != unstable.Array {
		n.end = int(value.Raw.Offset + value.Raw.Length)
		return
	}
	found := n.list(node.Value(), n.after(end))
	n.end = found.close + 1
	if path[len(path)-1] == list {
		n.elements = &found
	}
}

// list reads a list of strings that opens at the offset.
func (n *network) list(node *unstable.Node, open int) elements {
	found := elements{open: open, start: -1, end: -1, comma: -1}
	at := open + 1
	for items := node.Children(); items.Next(); {
		raw := items.Node().Raw
		found.start, found.end = int(raw.Offset), int(raw.Offset+raw.Length)
		at = found.end
	}
	for ; n.content[at] != ']'; at++ {
		switch n.content[at] {
		case ',':
			found.comma = at
		case '#':
			at += bytes.IndexByte(n.content[at:], '\n')
		}
	}
	found.close = at
	return found
}

// add gives what must come into the file for the list to hold the rule.
func (n *network) add(list, rule string) []insertion {
	rule = quoted(rule)
	line := list + " = [" + rule + "]"
	switch {
	case n.elements != nil:
		return n.element(*n.elements, rule)
	case n.open >= 0 && n.end >= 0:
		return []insertion{{n.end, ", " + line}}
	case n.open >= 0 && n.content[n.open+1] == '}':
		return []insertion{{n.open + 1, " " + line + " "}}
	case n.open >= 0:
		return []insertion{{n.open + 1, " " + line}}
	case n.end >= 0:
		indent, _ := n.indent(n.key)
		return []insertion{{n.lineEnd(n.end), n.eol + indent + n.prefix + line}}
	case n.header >= 0:
		return []insertion{{n.lineEnd(n.header), n.eol + line}}
	}
	section := "[network]" + n.eol + line + n.eol
	switch {
	case len(n.content) == 0 || bytes.HasSuffix(n.content, []byte("\n\n")) || bytes.HasSuffix(n.content, []byte("\n\r\n")):
	case n.content[len(n.content)-1] == '\n':
		section = n.eol + section
	default:
		section = n.eol + n.eol + section
	}
	return []insertion{{len(n.content), section}}
}

// element puts one more string behind the last of a list, in the list's style:
// on a line of its own where the last one begins a line.
func (n *network) element(l elements, rule string) []insertion {
	if l.end < 0 {
		return n.first(l, rule)
	}
	indent, alone := n.indent(l.start)
	if !alone {
		return []insertion{{l.end, ", " + rule}}
	}
	comma := l.comma >= 0 && bytes.IndexByte(n.content[l.end:l.comma], '\n') < 0
	rest, line := l.end, n.lineEnd(l.end)
	if comma {
		rest = l.comma + 1
	}
	if behind := bytes.Trim(n.content[rest:line], " \t"); len(behind) > 0 && behind[0] != '#' {
		return []insertion{{l.end, "," + n.eol + indent + rule}} // the bracket is on this line
	}
	// Behind the comment of the last element.
	if comma {
		return []insertion{{line, n.eol + indent + rule + ","}}
	}
	return []insertion{{l.end, ","}, {line, n.eol + indent + rule}}
}

// first puts a string into an empty list.
func (n *network) first(l elements, rule string) []insertion {
	inside := n.content[l.open+1 : l.close]
	newline := bytes.LastIndexByte(inside, '\n')
	switch {
	case newline >= 0: // the bracket is alone on its line
		line := l.open + 1 + newline + 1
		indent := string(n.content[line:l.close])
		if step := "  "; strings.HasPrefix(indent, "\t") {
			indent += "\t"
		} else {
			indent += step
		}
		return []insertion{{line, indent + rule + "," + n.eol}}
	case len(inside) > 0:
		return []insertion{{l.open + 1, " " + rule}}
	}
	return []insertion{{l.open + 1, rule}}
}

// lineEnd is the end of the line that holds the offset, without its newline.
func (n *network) lineEnd(offset int) int {
	end := bytes.IndexByte(n.content[offset:], '\n')
	if end < 0 {
		return len(n.content)
	}
	end += offset
	if end > offset && n.content[end-1] == '\r' {
		end--
	}
	return end
}

// indent is what stands before the offset on its line, and whether that is
// nothing but blanks.
func (n *network) indent(offset int) (blanks string, only bool) {
	line := n.content[bytes.LastIndexByte(n.content[:offset], '\n')+1 : offset]
	rest := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), len(rest) == 0
}

// quoted is a TOML basic string.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
