package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Hash identifies a file's content, for trust and for records.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Parse reads the content of a configuration file; file is only its name in errors.
// It reports every problem of the file in one error, of kind fault.Invalid, or
// fault.Unsupported when the only problem is a key that this version does not act
// on yet.
func Parse(file string, content []byte) (Config, error) { return parse(file, content, false) }

// parse is Parse, and for a repository's file also refuses keys that only the
// human's own may set.
func parse(file string, content []byte, repository bool) (Config, error) {
	if len(content) > MaxSize {
		return Config{}, unreadable(file, []problem{{text: fmt.Sprintf("it is larger than %d bytes", MaxSize)}})
	}
	// The decoder first: it knows every rule of TOML, repeated keys among
	// them. The walk below needs positions, which it does not give.
	var whole map[string]any
	if err := toml.Unmarshal(content, &whole); err != nil {
		var syntax *toml.DecodeError
		if !errors.As(err, &syntax) {
			return Config{}, unreadable(file, []problem{{text: err.Error()}})
		}
		line, column := syntax.Position()
		return Config{}, unreadable(file, []problem{{
			position: position{line, column},
			text:     strings.TrimPrefix(syntax.Error(), "toml: "),
		}})
	}

	r := reader{
		config: Config{File: file, Hash: Hash(content)}, lines: lineStarts(content),
		keys: schema(), planned: planned(), tables: map[string]value{},
		whole: whole, places: map[string]position{}, repository: repository,
	}
	r.parser.Reset(content)
	for r.parser.NextExpression() {
		r.expression(r.parser.Expression())
	}
	if err := r.parser.Error(); err != nil {
		return Config{}, unreadable(file, []problem{{text: err.Error()}})
	}
	r.finish()
	if len(r.problems) > 0 {
		return Config{}, unreadable(file, r.problems)
	}
	return r.config, nil
}

// reader walks one file.
type reader struct {
	parser   unstable.Parser
	lines    []uint32 // offsets of their first bytes
	keys     []key
	planned  [][]string
	config   Config
	problems []problem

	section []string // of the last [header]
	skip    bool     // that header is a problem already; the lines below are not
	tables  map[string]value
	refused []string // planned names that were reported

	whole      map[string]any      // the decoded file
	places     map[string]position // of the parts of nested values
	repository bool                // the file came with a clone
}

func (r *reader) complain(at position, hint, format string, args ...any) {
	r.problems = append(r.problems, problem{position: at, text: fmt.Sprintf(format, args...), hint: hint})
}

func (r *reader) expression(node *unstable.Node) {
	switch node.Kind {
	case unstable.Table, unstable.ArrayTable:
		path, at := r.path(nil, node)
		r.section, r.skip = path, !r.enter(path, at, node.Kind == unstable.ArrayTable)
	case unstable.KeyValue:
		if !r.skip {
			r.pair(r.section, node)
		}
	}
}

// enter looks at a header, or at an inline table in its place, and reports whether
// the lines below are worth reading.
func (r *reader) enter(path []string, at position, repeated bool) bool {
	if r.isPlanned(path, at) {
		return false
	}
	if key, ok := r.nestedKey(path); ok {
		r.note(key, path, at, nil)
		return true
	}
	name := dotted(path)
	for _, key := range r.keys {
		switch {
		case key.Name == name && key.shape != table:
			r.complain(at, "", "%s must be %s, not a table", name, key.shape.wanted())
			return false
		case key.Name == name && !repeated:
			r.collect(key, value{position: at})
			return true
		case key.Name == name:
			r.complain(at, "["+name+"]", "%s must be %s, not a list of tables", name, key.shape.wanted())
			return false
		case key.holds(path):
			r.complain(at, "", "%s must be a string, not a table", name)
			return false
		}
	}
	switch {
	case !isSection(name):
		r.unknown(path, at)
		return false
	case repeated:
		r.complain(at, "["+name+"]", "%s must be a table, not a list of tables", name)
		return false
	}
	return true
}

// pair reads key = value below a path.
func (r *reader) pair(below []string, node *unstable.Node) {
	path, at := r.path(below, node)
	if r.isPlanned(path, at) {
		return
	}
	if key, ok := r.nestedKey(path); ok {
		r.note(key, path, at, node.Value())
		return
	}
	name, content := dotted(path), r.value(node.Value(), r.valueStart(node))
	for _, key := range r.keys {
		switch {
		case key.Name == name:
			r.store(key, content, at)
			return
		case key.holds(path):
			content.name = path[strings.Count(key.Name, ".")+1]
			if len(path) > strings.Count(key.Name, ".")+2 {
				content.shape = table // A.B = … makes a table of A
			}
			if content.shape == text {
				content.position = at // only the name can be wrong now
			}
			r.store(key, value{shape: table, items: []value{content}}, at)
			return
		}
	}
	switch {
	case !isSection(name):
		r.unknown(path, at)
	case content.shape != table:
		r.complain(content.position, "["+name+"]", "%s must be a table, not %s", name, content.shape)
	default:
		for children := node.Value().Children(); children.Next(); {
			r.pair(path, children.Node())
		}
	}
}

// holds reports whether path lies in the table that is the key's value.
func (k key) holds(path []string) bool {
	parts := strings.Split(k.Name, ".")
	return k.shape == table && len(path) > len(parts) && slices.Equal(path[:len(parts)], parts)
}

// store checks the shape of a value and hands it to its key.
func (r *reader) store(key key, content value, at position) {
	if key.shape != content.shape && !(key.shape == quantity && (content.shape == text || content.shape == number)) {
		r.complain(content.position, exampleOf(key, content), "%s must be %s, not %s", key.Name, key.shape.wanted(), content.shape)
		return
	}
	for _, item := range content.items {
		if item.shape == text {
			continue
		}
		name := "every element of " + key.Name
		if key.shape == table {
			name = key.Name + "." + dotted([]string{item.name})
		}
		r.complain(item.position, "", "%s must be a string, not %s", name, item.shape)
		return
	}
	if key.shape == table {
		content.position = at
		r.collect(key, content)
		return
	}
	if key.Own && r.repository {
		r.notOwn(key, at)
		return
	}
	r.config.Set = append(r.config.Set, key.Name)
	r.problems = append(r.problems, key.read(&r.config, content)...)
}

// notOwn refuses a key of a repository that only the human may set.
func (r *reader) notOwn(key key, at position) {
	r.complain(at, "set it in your own config.toml", "%s has an effect only in your own configuration", key.Name)
}

// collect gathers a table: TOML lets it come in pieces.
func (r *reader) collect(key key, piece value) {
	whole, ok := r.tables[key.Name]
	if !ok {
		whole = value{shape: table, position: piece.position}
	}
	whole.items = append(whole.items, piece.items...)
	r.tables[key.Name] = whole
}

func (r *reader) finish() {
	for _, key := range r.keys {
		if whole, ok := r.tables[key.Name]; ok {
			r.config.Set = append(r.config.Set, key.Name)
			r.problems = append(r.problems, key.read(&r.config, whole)...)
		}
	}
	r.nests()
	slices.Sort(r.config.Set)
	slices.SortStableFunc(r.problems, func(a, b problem) int {
		return slices.Compare([]int{a.line, a.column}, []int{b.line, b.column})
	})
}

// isPlanned reports a name that no version acts on yet, once.
func (r *reader) isPlanned(path []string, at position) bool {
	for _, parts := range r.planned {
		if len(path) < len(parts) || !slices.Equal(path[:len(parts)], parts) {
			continue
		}
		name := dotted(parts)
		if !slices.Contains(r.refused, name) {
			r.refused = append(r.refused, name)
			r.problems = append(r.problems, problem{
				position: at, early: true,
				text: fmt.Sprintf("%q is not supported by this version yet", name),
				hint: fmt.Sprintf("delete %q: it would have no effect", name),
			})
		}
		return true
	}
	return false
}

func (r *reader) unknown(path []string, at position) {
	hint := ""
	if len(r.problems) < shown { // the rest is only counted
		if near := nearest(path); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
	}
	r.complain(at, hint, "unknown key %q", dotted(path))
}
