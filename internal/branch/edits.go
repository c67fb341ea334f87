package branch

import (
	"encoding/hex"
	"maps"
	"slices"
)

// edits compares the sandbox's state with that of the last iteration (and the
// agent's last commit) and gives the paths to change, deletions first.
//
// What the sandbox has at a path is, in this order: a file of the upper
// directory; nothing, when it or a directory above it is gone; else what the
// base has. The same holds for the last iteration, so only few paths need a
// question to git.
func (i *importer) edits() ([]edit, error) {
	candidates := map[string]struct{}{}
	for path := range i.agent {
		candidates[path] = struct{}{}
	}
	for path, f := range i.now.files {
		if old, ok := i.old.files[path]; !ok || old.mode != f.mode || old.oid != f.oid {
			candidates[path] = struct{}{}
		}
	}
	for path := range i.old.files {
		if _, ok := i.now.files[path]; !ok {
			candidates[path] = struct{}{}
		}
	}
	// Both ways: what has just gone, and what came back (a restored snapshot).
	for _, sets := range [][2]map[string]struct{}{{i.now.gone, i.old.gone}, {i.old.gone, i.now.gone}} {
		if err := i.expand(candidates, sets[0], sets[1]); err != nil {
			return nil, err
		}
	}
	paths := slices.Sorted(maps.Keys(candidates))
	have, want, err := i.values(paths)
	if err != nil {
		return nil, err
	}
	var deletions, changes []edit
	for n, path := range paths {
		switch {
		case have[n] == want[n]:
		case want[n].mode == 0:
			deletions = append(deletions, edit{path: path})
		default:
			changes = append(changes, edit{path: path, mode: want[n].mode, oid: want[n].oid})
		}
	}
	return append(deletions, changes...), nil
}

// expand adds the layers' paths that are at or below a path of set and were
// not covered by other.
func (i *importer) expand(candidates, set, other map[string]struct{}) error {
	s := &scan{source: i.q.Source, format: i.r.ObjectFormat}
	for path := range set {
		if covered(other, path) {
			continue
		}
		found, err := s.expand(path)
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

// values gives what the last state had and the present one has at each path.
func (i *importer) values(paths []string) (have, want []treeEntry, err error) {
	have, want = make([]treeEntry, len(paths)), make([]treeEntry, len(paths))
	var queries []lookup
	var answers []*treeEntry
	for n, path := range paths {
		query := lookup{i.q.Base, path}
		if f, ok := i.now.files[path]; ok {
			want[n] = treeEntry{f.mode, hex.EncodeToString([]byte(f.oid))}
		} else if !covered(i.now.gone, path) {
			queries, answers = append(queries, query), append(answers, &want[n])
		}
		switch c, ok := i.agent[path]; {
		case ok && c.newMode == 0:
		case ok:
			have[n] = treeEntry{c.newMode, c.newOid}
		default:
			if f, ok := i.old.files[path]; ok {
				have[n] = treeEntry{f.mode, hex.EncodeToString([]byte(f.oid))}
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
		if found[n].mode == modeTree { // a directory there is no file
			found[n] = treeEntry{}
		}
		*answers[n] = found[n]
	}
	return have, want, nil
}
