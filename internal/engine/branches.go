package engine

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// InnerBranch is a branch of the git inside a sandbox.
type InnerBranch struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`          // inside
	Apart  bool   `json:"apart"`           // it has commits that are on no branch of the host
	Taken  string `json:"taken,omitempty"` // the host's branch that it was taken as, unless it has moved since
}

// Branches lists the branches of the git inside, those of its worktrees
// included. It starts nothing and changes nothing.
func (e *Engine) Branches(ctx context.Context, dir, name string) ([]InnerBranch, error) {
	p, err := e.find(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit") // of the quarantine
	if err != nil {
		return nil, err
	}
	defer unlock()
	return e.innerBranches(ctx, p)
}

func (e *Engine) innerBranches(ctx context.Context, p *place) ([]InnerBranch, error) {
	inner, err := branch.InnerHead(ctx, p.repo, p.deltaFile(), p.record.Branch)
	if err != nil {
		return nil, err
	}
	found, err := branch.InnerBranches(ctx, p.repo, p.quarantine(), e.workspace(p), inner)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list the branches inside sandbox %q", p.record.Name)
	}
	all := []InnerBranch{}
	for _, one := range found {
		all = append(all, InnerBranch(one))
	}
	return all, nil
}

// leftPatience bounds the look for branches at the end of a run: the sandbox
// decides how many there are and how long their history is.
const leftPatience = 30 * time.Second

// leftInside is a note of the branches that stay inside, such as those of
// worktrees that sub-agents make. It is empty where there are none, or where they
// cannot be listed.
func (e *Engine) leftInside(ctx context.Context, dir, name string) []string {
	ctx, cancel := context.WithTimeout(ctx, leftPatience)
	defer cancel()
	all, err := e.Branches(ctx, dir, name)
	if err != nil {
		return nil
	}
	var names []string
	for _, one := range all {
		if one.Apart {
			names = append(names, strconv.Quote(one.Name))
		}
	}
	const most = 5
	switch {
	case len(names) == 0:
		return nil
	case len(names) > most:
		names = append(names[:most], "and others")
	}
	return []string{"branches that stay inside: " + strings.Join(names, ", ") + "; to bring one out: litterbox branches " + name + " --take BRANCH"}
}

// TakeBranchRequest asks for a branch of the git inside.
type TakeBranchRequest struct {
	Dir, Name     string
	Branch        string // inside
	As            string // here; empty: the same
	AllowDegraded bool
}

// TakenBranch is a branch that came out.
type TakenBranch struct {
	Branch  string   `json:"branch"`
	Commit  string   `json:"commit"`
	Commits int      `json:"commits"`
	Notes   []string `json:"notes"`
}

// TakeBranch brings a branch of the git inside to the host as a new branch of
// the repository. Its commits pass the same checks as those of HEAD do.
func (e *Engine) TakeBranch(ctx context.Context, request TakeBranchRequest) (result TakenBranch, err error) {
	as := request.As
	if as == "" {
		as = request.Branch
	}
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return TakenBranch{}, err
	}
	ctx, call, err := e.recordIn(ctx, p, "branches", map[string]any{"take": request.Branch, "as": as})
	if err != nil {
		return TakenBranch{}, err
	}
	defer func() { err = call.close(Outcome{Tip: result.Commit, Err: err}) }()
	if err := git.CheckRef(as); err != nil {
		return TakenBranch{}, err
	}
	if _, _, err := p.repo.Resolve(ctx, git.Heads+as); err == nil {
		return TakenBranch{}, fault.New(fault.AlreadyExists, "cannot take the branch %q of sandbox %q: the repository has a branch %q", request.Branch, p.record.Name, as).
			WithHint("litterbox branches %s --take %s --as %s-%s", p.record.Name, request.Branch, p.record.Name, as)
	}
	stream, err := e.running(ctx, p, request.AllowDegraded)
	if err != nil {
		return TakenBranch{}, err
	}
	if err := stream.Close(); err != nil {
		return TakenBranch{}, err
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return TakenBranch{}, err
	}
	defer unlock()
	all, err := e.innerBranches(ctx, p)
	if err != nil {
		return TakenBranch{}, err
	}
	i := slices.IndexFunc(all, func(one InnerBranch) bool { return one.Name == request.Branch })
	if i < 0 {
		return TakenBranch{}, fault.New(fault.NotFound, "there is no branch %q inside sandbox %q", request.Branch, p.record.Name).
			WithHint("litterbox branches %s", p.record.Name)
	}
	received, err := e.receiveBranch(ctx, p, all[i].Commit)
	if err != nil {
		return TakenBranch{}, fault.Wrap("", err, "cannot take the branch %q of sandbox %q", request.Branch, p.record.Name)
	}
	tip, err := branch.Take(ctx, p.repo, p.quarantine(), branch.TakeRequest{From: branch.InnerBranch(all[i]), Branch: as, Base: p.record.Base, State: p.deltaFile(), Strict: p.store.Strict()}, received)
	if tip == "" {
		return TakenBranch{}, err
	}
	if err != nil { // the branch is there all the same
		received.Notes = append(received.Notes, err.Error())
	}
	return TakenBranch{Branch: as, Commit: tip, Commits: len(received.Commits), Notes: append([]string{}, received.Notes...)}, nil
}

// receiveBranch takes what a branch inside has beyond the base.
func (e *Engine) receiveBranch(ctx context.Context, p *place, want string) (*branch.Received, error) {
	stream, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	ctx, cancel := context.WithTimeout(ctx, exportPatience)
	defer cancel()
	pack, writer := io.Pipe()
	go func() { writer.CloseWithError(wire.Export(ctx, stream, p.record.Base, want, writer)) }()
	defer pack.Close() // ends the export when the quarantine has seen enough
	return branch.ReceiveBranch(ctx, p.repo, p.quarantine(), pack, want)
}
