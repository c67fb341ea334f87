package local

import (
	"context"
	"path"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// maxPacked is how much of the packed-refs inside is read, in bytes.
const maxPacked = 1 << 20

const stash = "refs/stash"

// Refs implements workspace.Workspace. They are read as files
// (gitrepository-layout(5)). Refs that only the layers have are those that a
// sandbox begins with; refs in a reftable are not seen.
func (f Files) Refs(context.Context) (map[string]string, error) {
	top, err := layer.OpenWritten(f.Upper(), f.Frozen, f.Copy)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	found := map[string]string{}
	for line := range strings.Lines(top.Small(".git/packed-refs", maxPacked)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if git.IsOid(oid) && (strings.HasPrefix(name, git.Heads) || name == stash) && len(found) < workspace.MaxRefs {
			found[name] = oid
		}
	}
	names := []string{stash}
	for below := []string{strings.TrimSuffix(git.Heads, "/")}; len(below) > 0 && len(names) < workspace.MaxRefs; {
		dir := below[0]
		below = below[1:]
		for name, isDir := range list(top, ".git/"+dir, workspace.MaxRefs) {
			if at := path.Join(dir, name); isDir {
				below = append(below, at)
			} else {
				names = append(names, at)
			}
		}
	}
	for _, name := range names {
		if oid := strings.TrimSuffix(top.Small(".git/"+name, 128), "\n"); git.IsOid(oid) {
			found[name] = oid
		}
	}
	return found, nil
}

// list reads at most that many entries of a directory, and tells which are
// directories.
func list(w layer.Written, dir string, most int) map[string]bool {
	d, err := w.Walk(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	found := map[string]bool{}
	for _, part := range d.Parts {
		entries, err := hostile.Entries(part.Dir, most)
		if err != nil {
			return nil
		}
		for _, entry := range entries {
			if _, above := found[entry.Name()]; !above {
				found[entry.Name()] = entry.IsDir()
			}
		}
	}
	return found
}
