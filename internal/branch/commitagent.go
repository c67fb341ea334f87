package branch

import (
	"context"
	"maps"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// agentChanges takes into account what the agent's own commits began or ceased
// to track.
func (i *importer) agentChanges(ctx context.Context) error {
	i.agent = map[string]git.TreeDiff{}
	commits := i.q.Agent.commits()
	if len(commits) == 0 {
		return nil
	}
	last := commits[len(commits)-1]
	pairs := [][2]string{{i.old.last, last.Tree}}
	_, tree, err := i.r.Resolve(ctx, git.Heads+i.q.Branch)
	if err != nil {
		return err
	}
	if i.old.shared || (i.old.lastTree != "" && i.old.lastTree != tree) {
		// The last iteration's tree holds others' commits, which the agent
		// never had: take what each of its own commits changed.
		pairs = nil
		for _, c := range commits {
			pairs = append(pairs, [2]string{c.ParentTree, c.Tree})
		}
	}
	i.old.released = maps.Clone(i.old.released)
	for _, p := range pairs {
		changes, err := i.r.DiffTrees(ctx, p[0], p[1])
		if err != nil {
			return fault.Wrap("", err, "cannot read the agent's own commits")
		}
		for _, c := range changes {
			i.agent[c.Path] = c
			if c.NewMode == 0 {
				i.old.released[c.Path] = struct{}{}
			} else {
				delete(i.old.released, c.Path)
			}
		}
	}
	return nil
}

// agentCommit writes one commit of the agent's own history: its whole tree, or,
// where others have committed to the branch, only what it changed.
func (i *importer) agentCommit(ctx context.Context, c AgentCommit, parent string) (string, error) {
	if err := i.fi.Begin(i.ref, c.Author, c.Committer, string(c.Message), parent); err != nil {
		return "", err
	}
	if len(i.result.Agent) == 0 {
		before, err := i.fi.Ask(`ls ""`)
		if err != nil {
			return "", err
		}
		i.active = !i.old.shared && before[0].Oid == i.old.lastTree
	}
	if i.active {
		i.fi.Edit(git.Edit{Mode: git.ModeTree, Oid: c.Tree})
		return i.fi.End()
	}
	changes, err := i.r.DiffTrees(ctx, c.ParentTree, c.Tree)
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(changes, func(a, b git.TreeDiff) int { return int(min(a.NewMode, 1)) - int(min(b.NewMode, 1)) })
	for _, d := range changes {
		i.fi.Edit(git.Edit{Path: d.Path, Mode: d.NewMode, Oid: d.NewOid})
	}
	return i.fi.End()
}
