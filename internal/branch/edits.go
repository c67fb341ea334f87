package branch

import (
	"encoding/hex"
	"maps"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// edits compares the sandbox's state with that of the last iteration (and the
// agent's last commit) and returns the paths to change, deletions first.
//
// The sandbox has at a path, in this order: a file that changed; nothing, if
// it or a directory above it is gone; otherwise what the base has. The same
// holds for the last iteration, so git is asked about few paths.
func (i *importer) edits() ([]git.Edit, error) {
	candidates := map[string]struct{}{}
	for path := range i.agent {
		candidates[path] = struct{}{}
	}
	for path, f := range i.now.files {
		if old, ok := i.old.files[path]; !ok || old.Mode != f.Mode || old.Oid != f.Oid {
			candidates[path] = struct{}{}
		}
	}
	for path := range i.old.files {
		if _, ok := i.now.files[path]; !ok {
			candidates[path] = struct{}{}
		}
	}
	// Both ways: paths that have just gone, and paths that came back (a
	// restored snapshot).
	for _, sets := range [][2]map[string]struct{}{{i.now.gone, i.old.gone}, {i.old.gone, i.now.gone}} {
		if err := i.Expand(candidates, sets[0], sets[1]); err != nil {
			return nil, err
		}
	}
	paths := slices.Sorted(maps.Keys(candidates))
	have, want, err := i.values(paths)
	if err != nil {
		return nil, err
	}
	var deletions, changes []git.Edit
	for n, path := range paths {
		switch {
		case have[n] == want[n]:
		case want[n].Mode == 0:
			deletions = append(deletions, git.Edit{Path: path})
		default:
			changes = append(changes, git.Edit{Path: path, Mode: want[n].Mode, Oid: want[n].Oid})
		}
	}
	return append(deletions, changes...), nil
}

// Expand adds the layers' paths that are at or below a path of set and not
// covered by other.
func (i *importer) Expand(candidates, set, other map[string]struct{}) error {
	for path := range set {
		if covered(other, path) {
			continue
		}
		found, err := i.base.expand(path)
		if err != nil {
			return err
		}
		for _, p := range found {
			if !covered(other, p) {
				candidates[p] = struct{}{}
			}
		}
	}
	return nil
}

// values returns what the last state had and the present one has at each path.
func (i *importer) values(paths []string) (have, want []git.TreeEntry, err error) {
	have, want = make([]git.TreeEntry, len(paths)), make([]git.TreeEntry, len(paths))
	var queries []lookup
	var answers []*git.TreeEntry
	for n, path := range paths {
		query := lookup{i.q.Base, path}
		if f, ok := i.now.files[path]; ok {
			want[n] = git.TreeEntry{Mode: f.Mode, Oid: hex.EncodeToString([]byte(f.Oid))}
		} else if !covered(i.now.gone, path) {
			queries, answers = append(queries, query), append(answers, &want[n])
		}
		switch c, ok := i.agent[path]; {
		case ok && c.NewMode == 0:
		case ok:
			have[n] = git.TreeEntry{Mode: c.NewMode, Oid: c.NewOid}
		default:
			if f, ok := i.old.files[path]; ok {
				have[n] = git.TreeEntry{Mode: f.Mode, Oid: hex.EncodeToString([]byte(f.Oid))}
				continue
			}
			if covered(i.old.gone, path) {
				continue
			}
			if i.active { // the commit under way has it too, and its trees are already read
				query.treeish = ""
			}
			queries, answers = append(queries, query), append(answers, &have[n])
		}
	}
	found, err := i.lookUp(queries)
	if err != nil {
		return nil, nil, err
	}
	for n := range found {
		if found[n].Mode == git.ModeTree { // a directory there is no file
			found[n] = git.TreeEntry{}
		}
		*answers[n] = found[n]
	}
	return have, want, nil
}
