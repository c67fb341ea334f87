package patch

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// yamlFile is a YAML document of which only the outermost mapping and those
// right below it are understood, written in blocks: enough to add an entry to
// a mapping and take it out again without a library that would weigh more than
// the rest of this. What is laid out otherwise is refused.
type yamlFile struct {
	content []byte
	eol     string
	keys    []yamlKey
}

// yamlKey is a key of a block mapping.
type yamlKey struct {
	name     string
	line     int // where its line begins
	behind   int // behind its colon
	end      int // of its last line with content, without the newline
	indent   string
	children []yamlKey // where it holds a block mapping
}

var yamlName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#&*!|>%@` + "`" + `\[\]{},?:-][^#:]*?|[^\s"'#][\w./-]*)[ \t]*:(?:[ \t]|$)`)
})

func openYAML(content []byte) (Document, error) {
	f := &yamlFile{content: content, eol: lineEnd(content)}
	begin := 0
	if bytes.HasPrefix(content, []byte("\xef\xbb\xbf")) {
		begin = 3
	}
	keys, err := f.mapping(begin, len(content), "")
	if err != nil {
		return nil, err
	}
	for i := range keys {
		keys[i].children = f.below(keys[i])
	}
	f.keys = keys
	return f, nil
}

// mapping reads the keys with this indentation between two offsets.
func (f *yamlFile) mapping(from, to int, indent string) ([]yamlKey, error) {
	var keys []yamlKey
	for at := from; at < to; {
		next := to
		if i := bytes.IndexByte(f.content[at:to], '\n'); i >= 0 {
			next = at + i + 1
		}
		line := strings.TrimRight(string(f.content[at:next]), "\r\n")
		text := strings.TrimLeft(line, " ")
		deeper := len(line)-len(text) > len(indent)
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case strings.HasPrefix(text, "\t") && !deeper && strings.TrimSpace(text) != "":
			return nil, wrong(f.content, at, "a tab cannot indent in YAML")
		case deeper || strings.TrimSpace(text) == "":
			if len(keys) > 0 {
				keys[len(keys)-1].end = at + len(strings.TrimRight(line, " \t"))
			} else if deeper {
				return nil, wrong(f.content, at, "this line is indented, and nothing is above it")
			}
		case indent == "" && (text == "---" || text == "...") && len(keys) == 0:
		case indent == "" && (strings.HasPrefix(text, "---") || text == "..."):
			return nil, wrong(f.content, at, "more than one document in a file is not understood")
		case indent == "" && strings.HasPrefix(text, "%") && len(keys) == 0:
		case (text == "-" || strings.HasPrefix(text, "- ")) && len(keys) > 0:
			keys[len(keys)-1].end = at + len(line) // a list may stand as far left as its key
		default:
			match := yamlName().FindStringSubmatchIndex(text)
			if match == nil {
				return nil, wrong(f.content, at+len(indent), "a key and a colon must stand here")
			}
			key := yamlKey{name: unquoteYAML(text[match[2]:match[3]]), line: at, indent: indent, end: at + len(strings.TrimRight(line, " \t"))}
			key.behind = at + len(indent) + match[3] + strings.IndexByte(text[match[3]:], ':') + 1
			keys = append(keys, key)
		}
		at = next
	}
	return keys, nil
}

func unquoteYAML(text string) string {
	switch {
	case strings.HasPrefix(text, "'"):
		return strings.ReplaceAll(text[1:len(text)-1], "''", "'")
	case strings.HasPrefix(text, `"`):
		if plain, err := strconv.Unquote(text); err == nil {
			return plain
		}
	}
	return strings.TrimRight(text, " \t")
}

// below reads the mapping that a key holds; nil where it holds something else.
func (f *yamlFile) below(key yamlKey) []yamlKey {
	if f.inline(key) != "" {
		return nil
	}
	from := lineStart(f.content, key.line) + bytes.IndexByte(append(bytes.Clone(f.content[key.line:]), '\n'), '\n') + 1
	if from > key.end {
		return nil
	}
	for at := from; at < key.end; {
		line, _, _ := strings.Cut(string(f.content[at:key.end]), "\n")
		if text := strings.TrimLeft(line, " "); strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "#") {
			indent := line[:len(line)-len(text)]
			if len(indent) <= len(key.indent) {
				return nil
			}
			keys, err := f.mapping(from, key.end, indent)
			if err != nil {
				return nil
			}
			return keys
		}
		at += len(line) + 1
	}
	return nil
}

// inline is what stands behind a key on its line, without a comment.
func (f *yamlFile) inline(key yamlKey) string {
	line, _, _ := strings.Cut(string(f.content[key.behind:]), "\n")
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") {
		return ""
	}
	if i := strings.Index(line, " #"); i >= 0 && !strings.ContainsAny(line[:i], `"'`) {
		line = line[:i]
	}
	return strings.TrimSpace(line)
}

func find(keys []yamlKey, name string) (yamlKey, bool) {
	for _, key := range keys {
		if key.name == name {
			return key, true
		}
	}
	return yamlKey{}, false
}

func (f *yamlFile) at(path []string) (key yamlKey, ok bool) {
	keys := f.keys
	for i, name := range path {
		if key, ok = find(keys, name); !ok {
			return yamlKey{}, false
		}
		if keys = key.children; keys == nil && i < len(path)-1 {
			keys = f.below(key)
		}
	}
	return key, ok
}

func (f *yamlFile) Empty() bool { return len(bytes.TrimSpace(f.content)) == 0 }

func (f *yamlFile) Get(path ...string) (any, bool) {
	key, ok := f.at(path)
	if !ok {
		return nil, false
	}
	return f.value(key), true
}

// value reads what a key holds, as far as it is understood; its text, where it
// is not.
func (f *yamlFile) value(key yamlKey) any {
	if children := f.below(key); children != nil {
		object := map[string]any{}
		for _, child := range children {
			object[child.name] = f.value(child)
		}
		return object
	}
	lines := strings.Split(strings.TrimSpace(string(f.content[key.behind:key.end])), "\n")
	if text := f.inline(key); text != "" {
		if len(lines) > 1 {
			return strings.Join(lines, "\n")
		}
		return scalar(text)
	}
	list := []any{}
	for _, line := range lines {
		item, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			return strings.Join(lines, "\n")
		}
		list = append(list, scalar(item))
	}
	return list
}

func scalar(text string) any {
	text = strings.TrimSpace(text)
	switch text {
	case "true", "True":
		return true
	case "false", "False":
		return false
	case "null", "~", "":
		return nil
	case "{}":
		return map[string]any{}
	case "[]":
		return []any{}
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	return unquoteYAML(text)
}

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
	if there {
		key, _ := f.at(path)
		return []Splice{{key.line, string(f.content[key.line:key.end]), f.block(path[1], value, key.indent)}}, nil
	}
	parent, there := find(f.keys, path[0])
	if !there {
		text := path[0] + ":" + f.eol + f.block(path[1], value, "  ")
		switch {
		case len(f.content) == 0 || bytes.HasSuffix(f.content, []byte("\n")):
			text += f.eol
		default:
			text = f.eol + text
		}
		return []Splice{{At: len(f.content), New: text}}, nil
	}
	if len(parent.children) > 0 {
		return []Splice{{At: parent.end, New: f.eol + f.block(path[1], value, parent.children[0].indent)}}, nil
	}
	switch text := f.inline(parent); text {
	case "{}", "null", "~":
		at := parent.behind + bytes.Index(f.content[parent.behind:], []byte(text))
		return []Splice{{At: parent.behind, Old: string(f.content[parent.behind : at+len(text)])},
			{At: parent.end, New: f.eol + f.block(path[1], value, "  ")}}, nil
	case "":
		if line, _, _ := strings.Cut(string(f.content[parent.line:]), "\n"); parent.end <= parent.line+len(line) {
			return []Splice{{At: parent.end, New: f.eol + f.block(path[1], value, "  ")}}, nil
		}
	}
	return nil, fault.New(fault.Conflict, "the layout of %s is not understood", path[0])
}

// block writes a key and what it holds.
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
	if _, isText := scalar(text).(string); isText && plainYAML().MatchString(text) && strings.TrimSpace(text) == text {
		switch strings.ToLower(text) {
		case "yes", "no", "on", "off", "true", "false", "null", "y", "n":
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
	key, there := f.at(path)
	if !there {
		return nil, nil
	}
	for len(path) > 1 {
		parent, _ := f.at(path[:len(path)-1])
		if len(parent.children) > 1 {
			break
		}
		key, path = parent, path[:len(path)-1]
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
	return []Splice{{At: from, Old: string(f.content[from:to])}}, nil
}
