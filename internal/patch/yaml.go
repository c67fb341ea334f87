package patch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// yamlFile is a YAML document. Its values and the positions of its keys come
// from the library. Entries of block mappings come and go as whole lines, and a
// change is checked by reading the result again.
type yamlFile struct {
	content []byte
	eol     string
	tree    map[string]any
	lines   []int // where each begins, and the end of the file
	keys    []yamlKey
}

// yamlKey is a key of a block mapping.
type yamlKey struct {
	name   string
	line   int // where its line begins
	end    int // of its last line with content, without the newline
	indent string
	value  *yaml.Node
	inner  []yamlKey // if it holds a block mapping
}

func openYAML(content []byte) (Document, error) {
	f := &yamlFile{content: content, eol: lineEnd(content), lines: []int{0}}
	if at := oddLineEnd().FindIndex(bytes.ReplaceAll(content, []byte("\r\n"), []byte(" \n"))); at != nil {
		return nil, wrong(content, at[0], "a line ends neither with LF nor with CRLF")
	}
	for i, b := range content {
		if b == '\n' && i+1 < len(content) {
			f.lines = append(f.lines, i+1)
		}
	}
	f.lines = append(f.lines, len(content))
	root, tree, err := readYAML(content)
	if err != nil || root == nil {
		return f, err
	}
	f.tree = tree
	f.keys = f.mapping(root, len(f.lines)-1)
	return f, nil
}

// oddLineEnd matches the other line endings of YAML 1.1.
var oddLineEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("[\r\u0085\u2028\u2029]") })

// readYAML reads a mapping; root is nil if the file has only blanks and comments.
func readYAML(content []byte) (root *yaml.Node, tree map[string]any, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil, nil
	case err != nil:
		return nil, nil, unread(err)
	}
	root = document.Content[0]
	if root.ShortTag() == "!!null" {
		return nil, nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, nil, wrong(content, 0, "the file must hold keys and values")
	}
	if err := root.Decode(&tree); err != nil {
		return nil, nil, unread(err)
	}
	for key := range tree {
		tree[key] = withNames(tree[key])
	}
	var second yaml.Node
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, nil, fault.New(fault.Invalid, "more than one document in a file is not understood")
	}
	return root, tree, nil
}

func unread(err error) error {
	return fault.New(fault.Invalid, "%s", strings.TrimPrefix(err.Error(), "yaml: "))
}

// withNames turns every key of a mapping into a text.
func withNames(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withNames(v[key])
		}
	case map[any]any:
		named := map[string]any{}
		for key, held := range v {
			named[fmt.Sprint(key)] = withNames(held)
		}
		return named
	case []any:
		for i := range v {
			v[i] = withNames(v[i])
		}
	}
	return value
}

// mapping finds the keys of a mapping in block style that ends before the line
// limit. Lines count from 0.
func (f *yamlFile) mapping(node *yaml.Node, limit int) []yamlKey {
	if node.Kind != yaml.MappingNode || node.Style&yaml.FlowStyle != 0 {
		return nil
	}
	var keys []yamlKey
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		next := limit
		if i+2 < len(node.Content) {
			next = node.Content[i+2].Line - 1
		}
		key := yamlKey{name: name.Value, line: f.lines[name.Line-1], value: value}
		key.indent, _ = leading(f.content, key.line+name.Column-1)
		key.end = f.last(name.Line-1, next, key.indent, value)
		key.inner = f.mapping(value, next)
		keys = append(keys, key)
	}
	return keys
}

// last returns where the last line with content ends, of a key that begins on
// the line first and ends before the line next: comments and blank lines after
// it belong to what follows.
func (f *yamlFile) last(first, next int, indent string, value *yaml.Node) int {
	for len(value.Content) > 0 {
		value = value.Content[len(value.Content)-1]
	}
	block := value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	for line := next - 1; line > first; line-- {
		text := bytes.TrimRight(f.content[f.lines[line]:f.lines[line+1]], " \t\r\n")
		bare := bytes.TrimLeft(text, " ")
		comment := bytes.HasPrefix(bare, []byte("#")) && (!block || len(text)-len(bare) <= len(indent))
		if len(bare) > 0 && !comment && !bytes.Equal(text, []byte("...")) {
			return f.lines[line] + len(text)
		}
	}
	return f.lines[first] + len(bytes.TrimRight(f.content[f.lines[first]:f.lines[first+1]], " \t\r\n"))
}

func (f *yamlFile) at(path []string) (key yamlKey, ok bool) {
	keys := f.keys
	for _, name := range path {
		i := slices.IndexFunc(keys, func(k yamlKey) bool { return k.name == name })
		if i < 0 {
			return yamlKey{}, false
		}
		key, keys = keys[i], keys[i].inner
	}
	return key, len(path) > 0
}

func (f *yamlFile) Empty() bool { return len(bytes.TrimSpace(f.content)) == 0 }

func (f *yamlFile) Get(path ...string) (any, bool) { return lookup(f.tree, path) }

func (f *yamlFile) Raw(path ...string) string {
	key, ok := f.at(path)
	if !ok {
		return ""
	}
	return string(f.content[key.line:key.end])
}

// Set puts an object at a path of two keys.
func (f *yamlFile) Set(path []string, value any) ([]Splice, error) {
	now, there := f.Get(path...)
	if there && Same(now, value) {
		return nil, nil
	}
	if len(path) != 2 {
		return nil, fault.New(fault.Internal, "cannot set %s", named(path))
	}
	want := clone(f.tree)
	if _, raw := value.(Raw); raw {
		want = nil // verbatim text, whose value is not known here
	} else if !put(want, path, Plain(value)) {
		return nil, fault.New(fault.Conflict, "the layout of %s is not understood", path[0])
	}
	splices, err := f.place(path, value)
	if err != nil {
		return nil, err
	}
	return f.checked(want, path, splices)
}

// place says where a value goes.
func (f *yamlFile) place(path []string, value any) ([]Splice, error) {
	if key, ok := f.at(path); ok {
		return []Splice{{key.line, string(f.content[key.line:key.end]), f.block(path[1], value, key.indent)}}, nil
	}
	parent, ok := f.at(path[:1])
	switch {
	case !ok:
		text := path[0] + ":" + f.eol + f.block(path[1], value, "  ")
		if len(f.content) == 0 || bytes.HasSuffix(f.content, []byte("\n")) {
			return []Splice{{At: len(f.content), New: text + f.eol}}, nil
		}
		return []Splice{{At: len(f.content), New: f.eol + text}}, nil
	case len(parent.inner) > 0:
		return []Splice{{At: parent.end, New: f.eol + f.block(path[1], value, parent.inner[0].indent)}}, nil
	case parent.value.ShortTag() != "!!null" && (parent.value.Kind != yaml.MappingNode || len(parent.value.Content) > 0):
		return nil, fault.New(fault.Conflict, "the layout of %s is not understood", path[0])
	}
	below := Splice{At: parent.end, New: f.eol + f.block(path[1], value, "  ")}
	line, _, _ := bytes.Cut(f.content[parent.line:], []byte("\n"))
	nothing := emptyYAML().FindSubmatchIndex(line)
	if nothing == nil {
		return []Splice{below}, nil
	}
	from, to := parent.line+nothing[2], parent.line+nothing[3]
	return []Splice{{At: from, Old: string(f.content[from:to])}, below}, nil
}

// emptyYAML matches an empty value, after its key.
var emptyYAML = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`:([ \t]+(?:\{[ \t]*\}|null|~))[ \t]*\r?(?:$|#)`)
})

// checked makes sure that splices have the wanted result.
func (f *yamlFile) checked(want map[string]any, path []string, splices []Splice) ([]Splice, error) {
	changed, err := Apply(f.content, splices)
	if err != nil {
		return nil, err
	}
	_, got, err := readYAML(changed)
	if err != nil || want != nil && !Same(clone(got), want) {
		return nil, fault.New(fault.Conflict, "the layout around %s is not understood", named(path))
	}
	return splices, nil
}

// block writes a key and its value.
func (f *yamlFile) block(name string, value any, indent string) string {
	switch v := value.(type) {
	case Raw:
		return string(v)
	case Object:
		if len(v) == 0 {
			return indent + name + ": {}"
		}
		lines := []string{indent + name + ":"}
		for _, field := range v {
			lines = append(lines, f.block(field.Key, field.Value, indent+"  "))
		}
		return strings.Join(lines, f.eol)
	case []string:
		if len(v) == 0 {
			return indent + name + ": []"
		}
		lines := []string{indent + name + ":"}
		for _, item := range v {
			lines = append(lines, indent+"- "+yamlText(item))
		}
		return strings.Join(lines, f.eol)
	case string:
		return indent + name + ": " + yamlText(v)
	}
	return indent + name + ": " + (&jsonFile{}).render(value, "", false)
}

var plainYAML = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z/][\w /.,()-]*$`)
})

// yamlText writes a string: a JSON string is one of YAML, too.
func yamlText(text string) string {
	var read any
	if plainYAML().MatchString(text) && yaml.Unmarshal([]byte(text), &read) == nil && read == text {
		switch strings.ToLower(text) {
		case "yes", "no", "on", "off", "y", "n": // which were other values before YAML 1.2
		default:
			return text
		}
	}
	return quote(text)
}

func (f *yamlFile) Append(path []string, _ []string) ([]Splice, error) {
	return nil, fault.New(fault.Internal, "cannot add to the list %s", named(path))
}

func (f *yamlFile) Drop(path []string, _ []string) ([]Splice, error) {
	return nil, fault.New(fault.Internal, "cannot take from the list %s", named(path))
}

func (f *yamlFile) Remove(path []string) ([]Splice, error) {
	if _, there := f.Get(path...); !there {
		return nil, nil
	}
	want := clone(f.tree)
	key, ok := f.at(lift(want, path))
	if !ok {
		return nil, fault.New(fault.Conflict, "the layout around %s is not understood", named(path))
	}
	from, to := key.line, key.end
	switch {
	case to < len(f.content): // with the end of its line
		to += bytes.IndexByte(f.content[to:], '\n') + 1
	case from > 0: // or of the one before
		from--
		if from > 0 && f.content[from-1] == '\r' {
			from--
		}
	}
	return f.checked(want, path, []Splice{{At: from, Old: string(f.content[from:to])}})
}
