package patch

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// tomlFile is a TOML document. Its values come from the library, their positions
// from the library's parser, and a change is checked by reading the result again.
type tomlFile struct {
	content []byte
	tree    map[string]any
	parts   []part
	eol     string
}

// part is a line of a TOML file that is a header or begins a key and value.
type part struct {
	path   []string // from the root
	line   int      // where its line begins
	header bool
	value  *[2]int // the position of a scalar value
}

func openTOML(content []byte) (Document, error) {
	f := &tomlFile{content: content, tree: map[string]any{}, eol: lineEnd(content)}
	if err := toml.Unmarshal(content, &f.tree); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			row, column := at.Position()
			return nil, fault.New(fault.Invalid, "line %d, column %d: %s", row, column, strings.TrimPrefix(at.Error(), "toml: "))
		}
		return nil, fault.New(fault.Invalid, "%s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	var parser unstable.Parser
	parser.Reset(content)
	var section []string
	for parser.NextExpression() {
		expression := parser.Expression()
		var path []string
		begin := -1
		for keys := expression.Key(); keys.Next(); {
			if begin < 0 {
				begin = int(keys.Node().Raw.Offset)
			}
			path = append(path, string(keys.Node().Data))
		}
		if begin < 0 {
			continue // a comment
		}
		p := part{line: lineStart(content, begin), header: expression.Kind != unstable.KeyValue}
		if p.header {
			section = path
			p.path = path
		} else {
			p.path = slices.Concat(section, path)
			if raw := expression.Value().Raw; raw.Length > 0 {
				p.value = &[2]int{int(raw.Offset), int(raw.Offset + raw.Length)}
			}
		}
		f.parts = append(f.parts, p)
	}
	return f, nil
}

func (f *tomlFile) Empty() bool { return len(bytes.TrimSpace(f.content)) == 0 }

func (f *tomlFile) Get(path ...string) (any, bool) { return lookup(f.tree, path) }

// lookup finds the value at a path of a tree.
func lookup(tree map[string]any, path []string) (any, bool) {
	var value any = tree
	for _, key := range path {
		table, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = table[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

func (f *tomlFile) Raw(path ...string) string {
	for _, p := range f.parts {
		if slices.Equal(p.path, path) && p.value != nil {
			return string(f.content[p.value[0]:p.value[1]])
		}
	}
	return ""
}

func (f *tomlFile) Set(path []string, value any) ([]Splice, error) {
	if now, there := f.Get(path...); there && Same(now, value) {
		return nil, nil
	}
	want := clone(f.tree)
	plain := value
	if _, raw := value.(Raw); raw {
		plain = nil
	} else if !put(want, path, Plain(value)) {
		return nil, fault.New(fault.Conflict, "something above %s is not a table", named(path))
	}
	splice := f.place(path, value)
	if plain == nil {
		want = nil // verbatim text, whose value is not known here
	}
	return f.checked(want, path, []Splice{splice})
}

// place says where a value goes.
func (f *tomlFile) place(path []string, value any) Splice {
	object, table := value.(Object)
	key := path[len(path)-1]
	for _, p := range f.parts {
		if slices.Equal(p.path, path) && p.value != nil && !table {
			return Splice{p.value[0], string(f.content[p.value[0]:p.value[1]]), tomlText(value)}
		}
	}
	if table {
		lines := []string{"[" + tomlPath(path) + "]"}
		for _, field := range object {
			lines = append(lines, tomlPath([]string{field.Key})+" = "+tomlText(field.Value))
		}
		return f.behindAll(lines)
	}
	line := tomlPath([]string{key}) + " = " + tomlText(value)
	for i, p := range f.parts {
		if p.header && slices.Equal(p.path, path[:len(path)-1]) {
			for i+1 < len(f.parts) && !f.parts[i+1].header {
				i++
			}
			return Splice{At: f.end(i), New: f.eol + line}
		}
	}
	if len(path) > 1 {
		return f.behindAll([]string{"[" + tomlPath(path[:len(path)-1]) + "]", line})
	}
	last := -1
	for i, p := range f.parts {
		if p.header {
			break
		}
		last = i
	}
	switch {
	case last >= 0:
		return Splice{At: f.end(last), New: f.eol + line}
	case len(f.parts) == 0:
		return f.behindAll([]string{line})
	}
	at := 0
	if bytes.HasPrefix(f.content, []byte("\xef\xbb\xbf")) {
		at = 3
	}
	return Splice{At: at, New: line + f.eol + f.eol} // before the first section and its comments
}

// behindAll puts lines at the end of the file, after a blank line. A file
// whose last line has no end has none afterwards either.
func (f *tomlFile) behindAll(lines []string) Splice {
	text := strings.Join(lines, f.eol)
	switch {
	case len(f.content) == 0:
		text += f.eol
	case bytes.HasSuffix(f.content, []byte("\n")):
		text = f.eol + text + f.eol
	default:
		text = f.eol + f.eol + text
	}
	return Splice{At: len(f.content), New: text}
}

// end returns where the last line of a part ends, without its newline: before
// blank lines or comments in front of the next part.
func (f *tomlFile) end(i int) int {
	end := len(f.content)
	if i+1 < len(f.parts) {
		end = f.parts[i+1].line
	}
	text := f.content[:end]
	for {
		text = bytes.TrimRight(text, " \t\r\n")
		start := lineStart(text, len(text))
		if line := bytes.TrimLeft(text[start:], " \t"); start <= f.parts[i].line || !bytes.HasPrefix(line, []byte("#")) {
			break
		}
		text = text[:start]
	}
	return len(text)
}

func (f *tomlFile) Drop(path []string, _ []string) ([]Splice, error) {
	return nil, fault.New(fault.Internal, "cannot take from the list %s", named(path))
}

// Remove removes a section with those below it, or a key. A section with
// nothing else goes too.
func (f *tomlFile) Remove(path []string) ([]Splice, error) {
	if _, there := f.Get(path...); !there {
		return nil, nil
	}
	want := clone(f.tree)
	path = lift(want, path)
	below := func(p part) bool { return len(p.path) >= len(path) && slices.Equal(p.path[:len(path)], path) }
	var splices []Splice
	for i := 0; i < len(f.parts); i++ {
		if !below(f.parts[i]) {
			continue
		}
		first := i
		for i+1 < len(f.parts) && below(f.parts[i+1]) {
			i++
		}
		from, to := f.parts[first].line, f.end(i)
		// With the end of the line before, and a blank line if sections are
		// separated by one.
		before := bytes.TrimRight(f.content[:from], "\r\n")
		rows := bytes.Count(f.content[len(before):from], []byte("\n"))
		switch {
		case len(before) == 0:
			from = 0
			to += len(f.content[to:]) - len(bytes.TrimLeft(f.content[to:], "\r\n"))
		case f.parts[first].header && rows > 1:
			from -= 2 * len(f.eol)
		default:
			from -= len(f.eol)
		}
		splices = append(splices, Splice{At: from, Old: string(f.content[from:to])})
	}
	return f.checked(want, path, splices)
}

// checked makes sure that splices have the wanted result.
func (f *tomlFile) checked(want map[string]any, path []string, splices []Splice) ([]Splice, error) {
	changed, err := Apply(f.content, splices)
	if err != nil {
		return nil, err
	}
	got := map[string]any{}
	if toml.Unmarshal(changed, &got) != nil || want != nil && !Same(got, want) {
		return nil, fault.New(fault.Conflict, "the layout around %s is not understood", named(path))
	}
	return splices, nil
}

// put sets a value in a tree.
func put(tree map[string]any, path []string, value any) bool {
	for _, key := range path[:len(path)-1] {
		if tree[key] == nil {
			tree[key] = map[string]any{}
		}
		next, ok := tree[key].(map[string]any)
		if !ok {
			return false
		}
		tree = next
	}
	tree[path[len(path)-1]] = value
	return true
}

// lift removes a value from a tree, with anything empty without it, and
// returns the path of what was removed.
func lift(tree map[string]any, path []string) []string {
	if len(path) > 1 {
		if below, ok := tree[path[0]].(map[string]any); ok {
			gone := lift(below, path[1:])
			if len(below) > 0 {
				return append([]string{path[0]}, gone...)
			}
		}
	}
	delete(tree, path[0])
	return path[:1]
}

func clone(tree map[string]any) map[string]any {
	copied, ok := Plain(tree).(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return copied
}

func tomlPath(path []string) string {
	var parts []string
	for _, key := range path {
		if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || key == "" {
			key = tomlText(key)
		}
		parts = append(parts, key)
	}
	return strings.Join(parts, ".")
}

// tomlText writes a scalar or a list of strings. A JSON string is a basic string
// of TOML, except for the one control character that JSON leaves as it is.
func tomlText(value any) string {
	switch v := value.(type) {
	case Raw:
		return string(v)
	case string:
		return strings.ReplaceAll(quote(v), "\x7f", `\u007F`)
	case []string:
		var items []string
		for _, item := range v {
			items = append(items, tomlText(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return (&jsonFile{}).render(value, "", false)
}
