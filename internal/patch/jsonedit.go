package patch

import (
	"bytes"
	"strings"
)

// insert puts elements, each a single field, after those of an object or list,
// in the existing style: each on a line of its own if the last one begins a
// line, with a comma at the end if there is one.
func (f *jsonFile) insert(n *node, elements []Object) []Splice {
	write := func(e Object, indent string, multi bool) string {
		text := f.render(e[0].Value, indent, multi)
		if n.kind == '{' {
			text = quote(e[0].Key) + ": " + text
		}
		return text
	}
	if len(n.elements) == 0 {
		return f.first(n, elements, write)
	}
	last := n.elements[len(n.elements)-1]
	before := n.start
	if len(n.elements) > 1 {
		before = n.elements[len(n.elements)-2].value.end
	}
	indent, multi := f.indentOf(last.start), bytes.Contains(f.content[before:last.start], []byte("\n"))
	var parts []string
	for _, e := range elements {
		parts = append(parts, write(e, indent, multi))
	}
	separator := " "
	if multi {
		separator = f.eol + indent
	}
	text := separator + strings.Join(parts, ","+separator)
	behind := last.value.end
	if last.comma >= 0 {
		behind, text = last.comma+1, text+","
	}
	at := behind
	if multi {
		at = f.restOfLine(behind)
	}
	switch {
	case last.comma >= 0:
		return []Splice{{At: at, New: text}}
	case at == behind:
		return []Splice{{At: at, New: "," + text}}
	}
	return []Splice{{At: behind, New: ","}, {At: at, New: text}}
}

// first puts elements into an empty object or list.
func (f *jsonFile) first(n *node, elements []Object, write func(Object, string, bool) string) []Splice {
	multi := n.kind == '{' && (len(f.root.elements) == 0 || bytes.Contains(f.content[f.root.start:f.root.end], []byte("\n"))) ||
		n.kind == '[' && len(elements) > 4
	inside := f.content[n.start+1 : n.end-1]
	solid := bytes.TrimRight(inside, " \t\r\n") // only comments, if anything
	at := n.start + 1 + len(solid)
	blank := inside[len(solid):]
	outer := f.indentOf(n.start)
	indent := outer + f.unit
	broken := bytes.Contains(blank, []byte("\n"))
	var parts []string
	for _, e := range elements {
		parts = append(parts, write(e, indent, multi || broken))
	}
	if !multi && !broken && len(solid) == 0 {
		return []Splice{{At: at, New: strings.Join(parts, ", ")}}
	}
	separator := f.eol + indent
	text := separator + strings.Join(parts, ","+separator)
	if !broken {
		text += f.eol + outer
	}
	return []Splice{{At: at, New: text}}
}

// restOfLine returns the end of the line after an offset, if only a comment
// follows there; otherwise the offset itself.
func (f *jsonFile) restOfLine(at int) int {
	for end := at; end < len(f.content); {
		switch c := f.content[end]; {
		case c == '\n':
			if f.content[end-1] == '\r' && end > at {
				return end - 1
			}
			return end
		case c == ' ' || c == '\t' || c == '\r':
			end++
		case c == '/':
			behind := behindComment(f.content, end)
			if behind == end || bytes.Contains(f.content[end:behind], []byte("\n")) {
				return at
			}
			end = behind
		default:
			return at
		}
	}
	return at
}

// cut removes elements, with the lines that only they occupy.
func (f *jsonFile) cut(n *node, gone func(element) bool) []Splice {
	var kept []int
	for i, e := range n.elements {
		if !gone(e) {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 {
		return f.hollow(n)
	}
	var splices []Splice
	remove := func(from, to int) {
		if last := len(splices) - 1; last >= 0 && splices[last].At+len(splices[last].Old) >= from {
			from = splices[last].At + len(splices[last].Old)
		}
		if from < to {
			splices = append(splices, Splice{At: from, Old: string(f.content[from:to])})
		}
	}
	final := kept[len(kept)-1]
	trailing := n.elements[len(n.elements)-1].comma >= 0
	for i, e := range n.elements {
		if i == final && i < len(n.elements)-1 && !trailing {
			remove(e.comma, e.comma+1)
		}
		if !gone(e) {
			continue
		}
		from, to := e.start, e.value.end
		if e.comma >= 0 {
			to = e.comma + 1
		}
		if blanks, only := leading(f.content, from); only {
			from -= len(blanks)
			if from > 0 {
				from-- // the newline
			}
			if from > 0 && f.content[from-1] == '\r' {
				from--
			}
		} else if i > 0 {
			for from > 0 && (f.content[from-1] == ' ' || f.content[from-1] == '\t') {
				from--
			}
		} else {
			to = n.elements[1].start
		}
		remove(from, to)
	}
	return splices
}

// hollow empties an object or list; comments stay.
func (f *jsonFile) hollow(n *node) []Splice {
	from, to := n.start+1, n.end-1
	first, last := n.elements[0], n.elements[len(n.elements)-1]
	end := last.value.end
	if last.comma >= 0 {
		end = last.comma + 1
	}
	blank := func(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }
	if !blank(f.content[from:first.start]) || !blank(f.content[end:to]) {
		from, to = first.start, end
		if blanks, only := leading(f.content, from); only && from > len(blanks) {
			from -= len(blanks) + 1
			if f.content[from-1] == '\r' {
				from--
			}
		}
	}
	return []Splice{{At: from, Old: string(f.content[from:to])}}
}
