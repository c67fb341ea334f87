package layer

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// A tree near a cached one is laid over it: a layer with the files that differ
// and whiteouts for those that are gone. The layer below is always a whole
// tree, so a tree never has more than two layers; after a few deltas the
// newest is flattened into a whole tree of its own.
//
// No directory of such a layer needs to be opaque: where a file became a
// directory or vice versa, the new one hides the old by its kind, and every
// path that is gone from a directory that stays has its own whiteout.
const (
	deltas = "deltas"
	// onto comes in an entry's name before the tree that it lies on.
	onto = "-on-"
	// nearest is how many cached trees are compared, the newest first.
	nearest = 3
	// A delta has at most this many paths, and at most one in deltaShare of
	// the tree below.
	deltaPaths = 20_000
	deltaShare = 8
	// fewDeltas lie on one tree, or fewPaths in one delta, before it is time to
	// flatten.
	fewDeltas = 8
	fewPaths  = 200
)

// deltaBase is the whole tree that a delta lies on, and the differences.
type deltaBase struct {
	dir     string // its entry
	tree    string
	changes []git.TreeDiff
}

// madeDelta finds a delta that was made before.
func (c Cache) madeDelta(job checkout) (Tree, bool) {
	made, err := filepath.Glob(filepath.Join(c.Dir, deltas, job.key()+onto+"*"))
	if err != nil {
		return Tree{}, false
	}
	for _, dir := range made {
		_, tree, _ := strings.Cut(filepath.Base(dir), onto)
		base := filepath.Join(c.Dir, trees, tree+job.suffix())
		if complete(dir, nil) && complete(base, nil) {
			use(dir)
			use(base)
			return layerOn(dir, base), true
		}
	}
	return Tree{}, false
}

// delta returns the tree as a delta on a cached one. It is not ok if none is
// near enough, or if anything goes wrong: then the tree is checked out whole.
func (c Cache) delta(ctx context.Context, job checkout) (Tree, bool) {
	base := c.nearest(ctx, job)
	if base == nil {
		return Tree{}, false
	}
	use(base.dir)
	// After a reboot it is made again instead of verified: both take as long.
	dir, err := c.entry(ctx, deltas, job.key()+onto+base.tree, nil, func(dir string, lock *os.File) error {
		return job.runOn(ctx, base, dir, lock)
	})
	if err != nil {
		return Tree{}, false
	}
	layer := layerOn(dir, base.dir)
	layer.Flatten = len(base.changes) > fewPaths || c.deltasOn(base.tree) >= fewDeltas
	return layer, true
}

func layerOn(dir, base string) Tree {
	return Tree{
		Dir: filepath.Join(dir, "files"), Index: filepath.Join(dir, "index"), Below: filepath.Join(base, "files"),
	}
}

// deltasOn counts the deltas that lie on a tree.
func (c Cache) deltasOn(tree string) int {
	found, err := filepath.Glob(filepath.Join(c.Dir, deltas, "*"+onto+tree))
	if err != nil {
		return 0
	}
	return len(found)
}

// nearest finds a whole cached tree that differs little; nil if there is none.
func (c Cache) nearest(ctx context.Context, job checkout) *deltaBase {
	entries, err := os.ReadDir(filepath.Join(c.Dir, trees))
	if err != nil {
		return nil // the first one
	}
	type candidate struct {
		tree string
		made time.Time
	}
	var newest []candidate
	for _, e := range entries {
		tree, ok := strings.CutSuffix(e.Name(), job.suffix())
		info, err := e.Info()
		if ok && git.IsOid(tree) && err == nil {
			newest = append(newest, candidate{tree, info.ModTime()})
		}
	}
	slices.SortFunc(newest, func(a, b candidate) int { return b.made.Compare(a.made) })
	for _, n := range newest[:min(len(newest), nearest)] {
		dir := filepath.Join(c.Dir, trees, n.tree+job.suffix())
		if !complete(dir, git.VerifyTree(job.r.ObjectFormat)) {
			continue
		}
		changes, err := job.r.DiffTrees(ctx, n.tree, job.tree)
		if err != nil { // collected by git meanwhile
			continue
		}
		base := &deltaBase{dir: dir, tree: n.tree, changes: changes}
		if base.near(countEntries(filepath.Join(dir, "index"))) {
			return base
		}
	}
	return nil
}

// near reports whether the differences make a small layer that shows the tree exactly.
func (b *deltaBase) near(files int) bool {
	if len(b.changes) > deltaPaths || len(b.changes)*deltaShare > files {
		return false
	}
	var directories []string // where a submodule replaces something
	for _, d := range b.changes {
		if filepath.Base(d.Path) == ".gitattributes" {
			return false // affects files that did not change
		}
		if d.NewMode == git.ModeGitlink {
			directories = append(directories, d.Path+"/")
		}
	}
	for _, dir := range directories {
		for _, d := range b.changes {
			if strings.HasPrefix(d.Path, dir) {
				return false // would have to be an opaque directory
			}
		}
	}
	return true
}

// countEntries reads the number of files in an index.
func countEntries(index string) int {
	f, err := os.Open(index)
	if err != nil {
		return 0
	}
	defer f.Close()
	header := make([]byte, git.IndexHeader)
	if _, err := io.ReadFull(f, header); err != nil {
		return 0
	}
	return int(binary.BigEndian.Uint32(header[8:]))
}

// runOn fills dir with the differences from base. git sees an index of only
// those and of the files that decide about conversions; the index of the whole
// tree is assembled from the base's and this one.
func (j checkout) runOn(ctx context.Context, base *deltaBase, dir string, lock *os.File) error {
	files, path, format := filepath.Join(dir, "files"), filepath.Join(dir, "index"), j.r.ObjectFormat
	below, err := git.ReadIndex(filepath.Join(base.dir, "index"), format)
	if err != nil {
		return err
	}
	small, wanted := below.Only(base.changes, format)
	if err := git.WriteIndex(path, format, small, git.Owner{}); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
	}
	if err := j.git(ctx, dir, lock, strings.NewReader(wanted), "checkout-index", "-u", "-f", "-q", "-z", "--stdin"); err != nil {
		return err
	}
	if err := git.FinishIndex(ctx, files, path, format, j.owner); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot prepare the index of %s", j.tree)
	}
	above, err := git.ReadIndex(path, format)
	if err != nil {
		return err
	}
	whole := below.With(above, base.changes, format)
	if err := base.hide(files, whole.Paths); err != nil {
		return err
	}
	if err := git.WriteIndex(path, format, whole.Body(format), j.owner); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
	}
	return j.give(files)
}

// hide makes a whiteout for everything in the base that a tree with these sorted paths
// does not have, and a single one for a directory that is gone with its contents.
func (b *deltaBase) hide(files string, paths []string) error {
	hidden := map[string]bool{}
	for _, d := range b.changes {
		if d.NewMode != 0 {
			continue
		}
		name, ok := missing(paths, d.Path)
		if !ok || hidden[name] {
			continue
		}
		hidden[name] = true
		if err := makeWhiteout(files, name); err != nil {
			return err
		}
	}
	return nil
}

// missing finds the topmost directory above path, or path itself, of which a
// tree with these sorted paths has nothing. It is not ok if something took its
// place, which hides it by itself.
func missing(paths []string, path string) (name string, ok bool) {
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		name = path[:i]
		if _, is := slices.BinarySearch(paths, name); is {
			return "", false
		}
		at, _ := slices.BinarySearch(paths, name+"/")
		if at == len(paths) || !strings.HasPrefix(paths[at], name+"/") {
			return name, true
		}
	}
	return "", false
}
