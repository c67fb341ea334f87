package layer

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// gitTree is the base from git's objects, for a workspace whose layers are not
// on this host. It reads the requested trees, each once.
type gitTree struct {
	contents *git.Objects
	headers  *git.Objects
	binary   int                             // bytes of an object id
	trees    map[string]map[string]treeEntry // by object id, then by name
	top      string
}

// treeEntry is a tree's entry for a name.
type treeEntry struct {
	mode uint32
	oid  string // hexadecimal
}

// maxTree bounds one tree object. It is the user's own.
const maxTree = 1 << 30

// OpenTree opens the tree of a commit, or a tree, as the base.
func OpenTree(ctx context.Context, r *git.Repository, treeish string) (Beneath, error) {
	if !git.IsOid(treeish) {
		return nil, fault.New(fault.Invalid, "cannot compare with %q: not an object id", treeish)
	}
	return &gitTree{
		contents: r.Contents(ctx), headers: r.Headers(ctx), binary: git.NewHash(r.ObjectFormat).Size(),
		trees: map[string]map[string]treeEntry{}, top: treeish + "^{tree}",
	}, nil
}

// read returns the tree that an object is, or names.
func (t *gitTree) read(name string) (map[string]treeEntry, error) {
	if known, ok := t.trees[name]; ok {
		return known, nil
	}
	kind, content, err := t.contents.Content(name, maxTree)
	if err == nil && kind != "tree" {
		err = fault.New(fault.Internal, "cannot read %q: it is a %s", name, kind)
	}
	if err != nil {
		return nil, err
	}
	entries := map[string]treeEntry{}
	for len(content) > 0 {
		head, rest, ok := bytes.Cut(content, []byte{0})
		mode, file, spaced := strings.Cut(string(head), " ")
		if !ok || !spaced || len(rest) < t.binary {
			return nil, fault.New(fault.Internal, "cannot read the tree %q: it is damaged", name)
		}
		entries[file] = treeEntry{git.Octal(mode), hex.EncodeToString(rest[:t.binary])}
		content = rest[t.binary:]
	}
	t.trees[name] = entries
	return entries, nil
}

// find walks down to a path; ok is false where the tree has nothing there.
func (t *gitTree) find(path string) (found treeEntry, ok bool, err error) {
	found = treeEntry{mode: git.ModeTree, oid: t.top}
	for path != "" {
		if found.mode != git.ModeTree {
			return treeEntry{}, false, nil
		}
		name, rest, _ := strings.Cut(path, "/")
		entries, err := t.read(found.oid)
		if err != nil {
			return treeEntry{}, false, err
		}
		if found, ok = entries[name]; !ok {
			return treeEntry{}, false, nil
		}
		path = rest
	}
	return found, true, nil
}

func (t *gitTree) Lookup(set []int, path string) (Kind, []int, error) {
	if len(set) == 0 {
		return KindNone, nil, nil
	}
	found, ok, err := t.find(path)
	switch {
	case err != nil || !ok:
		return KindNone, nil, err
	case found.mode == git.ModeTree:
		return KindDir, set, nil
	case found.mode == git.ModeGitlink:
		return KindGitlink, set, nil
	}
	return KindFile, nil, nil
}

func (t *gitTree) Read(set []int, path string) ([]byte, error) {
	if len(set) == 0 {
		return nil, nil
	}
	found, ok, err := t.find(path)
	if err != nil || !ok || found.mode != git.ModeFile && found.mode != git.ModeExecutable {
		return nil, err
	}
	_, content, err := t.contents.Content(found.oid, git.MaxRules)
	return content, err
}

func (t *gitTree) Expand(set []int, path string, into []string) ([]string, error) {
	if len(set) == 0 {
		return into, nil
	}
	found, ok, err := t.find(path)
	if err != nil || !ok {
		return into, err
	}
	return t.below(found, path, into)
}

func (t *gitTree) below(e treeEntry, path string, into []string) ([]string, error) {
	if e.mode != git.ModeTree {
		return append(into, path), nil
	}
	entries, err := t.read(e.oid)
	for name, one := range entries {
		if into, err = t.below(one, git.Join(path, name), into); err != nil {
			return nil, err
		}
	}
	return into, err
}

func (t *gitTree) Size(path string) (int64, error) {
	found, ok, err := t.find(path)
	if err != nil || !ok || found.mode != git.ModeFile && found.mode != git.ModeExecutable {
		return 0, err
	}
	_, size, err := t.headers.Header(found.oid)
	return size, err
}

func (t *gitTree) All() []int { return []int{0} }

func (t *gitTree) Close() {
	_ = t.contents.Close() // it has nothing to lose
	_ = t.headers.Close()
}
