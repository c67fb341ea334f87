package landing

import (
	"bytes"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// maxLinks is how many links of a tree are followed to find all names of a
// changed file.
const maxLinks = 20_000

// treeEntries is the part of the merged tree that a judgement needs.
type treeEntries struct {
	links map[string]string // path → object id
	parts map[string]int    // directories that may be bare repositories → what they have of one
}

// The parts of a bare repository that count: git takes a directory for one by
// HEAD, objects and refs, and obeys its config.
const (
	hasHead = 1 << iota
	hasConfig
)

// listTree runs `git ls-tree -r -z` or `git ls-files --stage -z`, and keeps only
// the rare entries of the listing.
func listTree(ctx context.Context, c git.Command) (*treeEntries, error) {
	t := &treeEntries{links: map[string]string{}, parts: map[string]int{}}
	reader := &recordReader{each: t.take}
	c.Stdout = reader
	_, err := c.Output(ctx)
	return t, err
}

func (t *treeEntries) take(record []byte) {
	meta, name, ok := bytes.Cut(record, []byte{'\t'})
	if !ok {
		return
	}
	if bytes.HasPrefix(meta, []byte("120000 ")) {
		if f := strings.Fields(string(meta)); len(f) == 3 && len(t.links) < maxLinks {
			oid := f[1]
			if oid == "blob" { // ls-tree
				oid = f[2]
			}
			t.links[string(name)] = oid
		}
	}
	switch {
	case bytes.HasSuffix(name, []byte("/HEAD")):
		t.parts[path.Dir(string(name))] |= hasHead
	case bytes.HasSuffix(name, []byte("/config")):
		t.parts[path.Dir(string(name))] |= hasConfig
	}
}

// bare reports whether a path is in a directory that git would take for a
// repository.
func (t *treeEntries) bare(name string) bool {
	if t == nil {
		return false
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if t.parts[dir] == hasHead|hasConfig {
			return true
		}
	}
	return false
}

// aliases are the other names of paths, by the links of a tree.
type aliases map[string][]string // where a link leads → links

func (t *treeEntries) aliases(contents *contents) aliases {
	if t == nil || contents == nil {
		return nil
	}
	found := aliases{}
	for _, link := range slices.Sorted(maps.Keys(t.links)) {
		if target, ok := t.resolve(link, contents); ok {
			found[target] = append(found[target], link)
		}
	}
	return found
}

// resolve follows a link within the tree, through other links.
func (t *treeEntries) resolve(link string, contents *contents) (string, bool) {
	at := link
	for range 40 { // as many as Linux follows
		oid, isLink := "", false
		upTo := ""
		for prefix := at; prefix != "." && prefix != "/"; prefix = path.Dir(prefix) {
			if id, ok := t.links[prefix]; ok {
				oid, isLink, upTo = id, true, prefix // the topmost one counts
			}
		}
		if !isLink {
			return at, at != link && at != "." && at != ".." && !strings.HasPrefix(at, "../")
		}
		target, ok := contents.get(oid)
		if !ok || path.IsAbs(string(target)) {
			return "", false
		}
		at = path.Join(path.Dir(upTo), string(target), strings.TrimPrefix(at, upTo))
		if at == ".." || strings.HasPrefix(at, "../") {
			return "", false
		}
	}
	return "", false
}

// of gives the names under which links lead to a path.
func (a aliases) of(name string) []string {
	if len(a) == 0 {
		return nil
	}
	var names []string
	for at := name; ; at = path.Dir(at) {
		for _, link := range a[at] {
			names = append(names, link+strings.TrimPrefix(name, at))
		}
		if at == "." || !strings.Contains(at, "/") {
			return names
		}
	}
}

// recordReader hands on records that end in NUL.
type recordReader struct {
	each func([]byte)
	rest []byte
}

func (r *recordReader) Write(p []byte) (int, error) {
	n := len(p)
	for {
		record, rest, ok := bytes.Cut(p, []byte{0})
		if !ok {
			r.rest = append(r.rest, p...)
			return n, nil
		}
		if len(r.rest) > 0 {
			record = append(r.rest, record...)
			r.rest = r.rest[:0]
		}
		r.each(record)
		p = rest
	}
}
