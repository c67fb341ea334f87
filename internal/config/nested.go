package config

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// nested is the shape of a key whose value has a structure of its own: tables in
// tables, or one of several shapes. A nested key reads the decoded value; the walk
// over the file only remembers where each part of it is.
const nested shape = "a table"

// maxNesting is how far below its key a part of a nested value is still told
// apart in errors; a hostile file nests them thousands deep.
const maxNesting = 4

// tree is a nested value with the places of its parts.
type tree struct {
	value  any // as the TOML decoder gives it
	name   []string
	places map[string]position // of the whole file, by full dotted name
}

// part is the value at name in a table.
func (t tree) part(name string, value any) tree {
	return tree{value, append(slices.Clone(t.name), name), t.places}
}

// place is where the tree stands, or the nearest part around it.
func (t tree) place() position {
	for path := t.name; len(path) > 0; path = path[:len(path)-1] {
		if at, ok := t.places[dotted(path)]; ok {
			return at
		}
	}
	return position{}
}

func (t tree) wrong(hint, format string, args ...any) []problem {
	return wrong(value{position: t.place()}, hint, format, args...)
}

// nestedKey finds the nested key that path belongs to.
func (r *reader) nestedKey(path []string) (key, bool) {
	for _, k := range r.keys {
		parts := strings.Split(k.Name, ".")
		if k.nest != nil && len(path) >= len(parts) && slices.Equal(path[:len(parts)], parts) {
			return k, true
		}
	}
	return key{}, false
}

// note remembers where a part of a nested value stands, and the parts of an
// inline table.
func (r *reader) note(k key, path []string, at position, node *unstable.Node) {
	if !slices.Contains(r.config.Set, k.Name) {
		r.config.Set = append(r.config.Set, k.Name)
	}
	if len(path) > strings.Count(k.Name, ".")+1+maxNesting {
		return
	}
	for part := range path {
		if name := dotted(path[:part+1]); r.places[name] == (position{}) {
			r.places[name] = at
		}
	}
	if node == nil || node.Kind != unstable.InlineTable {
		return
	}
	for children := node.Children(); children.Next(); {
		child := children.Node()
		below, at := r.path(path, child)
		r.note(k, below, at, child.Value())
	}
}

// nests hands every nested value to its key.
func (r *reader) nests() {
	for _, k := range r.keys {
		if k.nest == nil || !slices.Contains(r.config.Set, k.Name) {
			continue
		}
		var inside any = r.whole
		path := strings.Split(k.Name, ".")
		for _, name := range path {
			table, _ := inside.(map[string]any)
			inside = table[name]
		}
		found := tree{inside, path, r.places}
		if k.Own && r.repository {
			r.notOwn(k, found.place())
			continue
		}
		r.problems = append(r.problems, k.nest(&r.config, found)...)
	}
}
