package branch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// bulk is the number of changed paths above which git fast-import is too slow
// to make trees: it searches a directory for each path, so 100,000 new files
// in one directory took 20 seconds, and a million an hour. Below that it costs
// less than the processes that it saves.
const bulk = 8192

// lookup is a path in a commit or tree; an empty treeish means the commit under
// way, before its edits.
type lookup struct{ treeish, path string }

// lookUp finds the tree entries at paths.
func (i *importer) lookUp(all []lookup) ([]git.TreeEntry, error) {
	if len(all) < bulk || !i.onDisk() {
		queries := make([]string, len(all))
		for n, q := range all {
			if queries[n] = git.ListQuery(q.treeish, q.path); q.treeish == "" {
				queries[n] = "ls " + git.QuotePath(q.path)
			}
		}
		return i.fi.Ask(queries...)
	}
	trees := map[string]map[string]git.TreeEntry{}
	found := make([]git.TreeEntry, len(all))
	for n, q := range all {
		if q.treeish == "" {
			q.treeish = i.parentTree
		}
		entries, known := trees[q.treeish]
		if !known {
			var err error
			if entries, err = listTree(i.fi.Ctx, i.r, q.treeish); err != nil {
				return nil, err
			}
			trees[q.treeish] = entries
		}
		found[n] = entries[q.path]
	}
	return found, nil
}

// onDisk reports whether other processes can read the tree before the edits;
// they cannot read one that fast-import has just made.
func (i *importer) onDisk() bool { return i.active || len(i.q.Agent.commits()) == 0 }

// listTree returns every file of a tree.
func listTree(ctx context.Context, r *git.Repository, treeish string) (map[string]git.TreeEntry, error) {
	if !git.IsOid(treeish) {
		return nil, fault.New(fault.Internal, "cannot list %q: not an object id", treeish)
	}
	out, err := r.Command("ls-tree", "-r", "-z", "--full-tree", treeish).Output(ctx)
	if err != nil {
		return nil, err
	}
	entries := map[string]git.TreeEntry{}
	for line := range strings.SplitSeq(string(out), "\x00") {
		head, path, ok := strings.Cut(line, "\t")
		if fields := strings.Fields(head); ok && len(fields) == 3 {
			entries[path] = git.TreeEntry{Mode: git.Octal(fields[0]), Oid: fields[2]}
		}
	}
	return entries, nil
}

// apply makes the edits in the commit under way.
func (i *importer) apply(ctx context.Context, edits []git.Edit) error {
	if len(edits) >= bulk && i.onDisk() {
		tree, err := i.bulkTree(ctx, edits)
		if err == nil {
			i.fi.Edit(git.Edit{Mode: git.ModeTree, Oid: tree})
			return nil
		}
		// git's index is stricter about paths than its trees are. Slow is
		// better than not at all.
		if git.ExitCode(err) < 0 {
			return err
		}
	}
	for _, e := range edits {
		i.fi.Edit(e)
	}
	return nil
}

// bulkTree makes the tree with a private index. The new trees go through an
// object directory of their own, where they are packed: thousands of loose ones
// would trigger the user's gc.auto. Blobs need not be readable yet.
func (i *importer) bulkTree(ctx context.Context, edits []git.Edit) (tree string, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(i.q.State), "bulk-")
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot make a directory for an index")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	objects := filepath.Join(dir, "objects")
	if err := os.Mkdir(objects, 0o755); err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot make %q", objects)
	}
	own := filepath.Join(i.r.CommonDir, "objects")
	run := func(stdin *bytes.Buffer, args ...string) (string, error) {
		c := i.r.Command(args...)
		c.Config = append(c.Config, "core.splitIndex=false", "index.sparse=false", "core.ignorecase=false", "core.untrackedCache=false", "pack.compression=0")
		c.Env = append(git.KeepHeap(), "GIT_INDEX_FILE="+filepath.Join(dir, "index"), "GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoteAlternate(own))
		if i.q.Strict {
			c.Config = append(c.Config, "core.fsync=all")
		}
		if stdin != nil {
			c.Stdin = stdin
		}
		return c.Line(ctx)
	}
	if _, err := run(nil, "read-tree", i.parentTree); err != nil {
		return "", err
	}
	var lines bytes.Buffer
	for _, e := range edits {
		if e.Mode == 0 {
			e.Oid = i.r.Zero()
		}
		fmt.Fprintf(&lines, "%06o %s\t%s\x00", e.Mode, e.Oid, e.Path)
	}
	if _, err := run(&lines, "update-index", "-z", "--replace", "--index-info"); err != nil {
		return "", err
	}
	if tree, err = run(nil, "write-tree", "--missing-ok"); err != nil || !git.IsOid(tree) {
		return "", errors.Join(err, i.notATree(tree))
	}
	loose, err := looseObjects(objects)
	if err != nil || loose.Len() == 0 {
		return tree, err
	}
	_, err = run(loose, "pack-objects", "--quiet", "--window=0", filepath.Join(own, "pack", "pack"))
	return tree, err
}

func (i *importer) notATree(answer string) error {
	if git.IsOid(answer) {
		return nil
	}
	return fault.New(fault.Internal, "cannot read git's answer %q", answer)
}

// quoteAlternate quotes the separators of entries in
// GIT_ALTERNATE_OBJECT_DIRECTORIES (git(1)).
func quoteAlternate(path string) string {
	if !strings.ContainsAny(path, ":\"\\\n") {
		return path
	}
	return git.QuotePath(path)
}

// looseObjects lists the objects of a directory, one on each line.
func looseObjects(dir string) (*bytes.Buffer, error) {
	var list bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if oid := filepath.Base(filepath.Dir(path)) + filepath.Base(path); git.IsOid(oid) {
			fmt.Fprintln(&list, oid)
		}
		return nil
	})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list %q", dir)
	}
	return &list, nil
}
