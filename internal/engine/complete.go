package engine

import (
	"context"
	"path"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Refs lists the short names of branches, tags and remote branches, for
// completion.
func (e *Engine) Refs(ctx context.Context, dir string) ([]string, error) {
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	out, err := repo.Command("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes").Output(ctx)
	if err != nil {
		return nil, err
	}
	return append([]string{"HEAD"}, strings.Fields(string(out))...), nil
}

// Tree lists a directory of a sandbox's branch: names, those of directories
// with a slash. The sandbox need not run.
func (e *Engine) Tree(ctx context.Context, dir, name, below string) ([]string, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	below = path.Clean(below)
	if path.IsAbs(below) || below == ".." || strings.HasPrefix(below, "../") {
		return nil, fault.New(fault.Invalid, "cannot list %q: it is not in the project", below)
	}
	of := git.Heads + p.record.Branch + ":"
	if below != "." {
		of += below
	}
	out, err := p.repo.Command("ls-tree", "-z", of).Output(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		about, name, ok := strings.Cut(entry, "\t")
		if !ok {
			continue
		}
		if strings.Contains(about, " tree ") {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}
