package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// UpdateRequest asks to bring a sandbox to a newer base.
type UpdateRequest struct {
	Dir, Name string
	Onto      string // revision; empty: the branch that it began on
	Rebase    bool   // its commits again on top of that, instead of a merge
	Markers   bool   // conflicts stay in the files as markers; without it they refuse the whole
}

// Updated is a sandbox on a newer base.
type Updated struct {
	Name      string   `json:"name"`
	Onto      string   `json:"onto"`     // the new base
	OntoRef   string   `json:"onto_ref"` // as it was named
	Commit    string   `json:"commit"`   // where the branch stands
	Number    int      `json:"number"`   // of the iteration; 0 when there was nothing to do
	Taken     int      `json:"taken"`    // commits of the new base that the sandbox did not have
	Replayed  int      `json:"replayed"` // by a rebase
	Changed   int      `json:"changed"`  // files inside that followed
	Conflicts []string `json:"conflicts"`
	Stayed    []string `json:"stayed"` // files that the sandbox was changing
	History   string   `json:"history,omitempty"`
	Before    string   `json:"before,omitempty"` // where the branch stood
}

// Update brings a live sandbox to a newer base, by merge or by rebase of its
// branch. The files inside follow one by one; ignored files, HOME and running
// programs stay as they are, and git inside gets the commits of the new base.
// Nothing changes where there are conflicts, unless Markers are asked for.
func (e *Engine) Update(ctx context.Context, request UpdateRequest) (result Updated, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return Updated{}, err
	}
	defer e.tell(p)
	result = Updated{Name: p.record.Name, Conflicts: []string{}, Stayed: []string{}}
	if request.Rebase && request.Markers {
		return result, fault.New(fault.Invalid, "cannot leave conflict markers in a rebase: each commit would hold them").
			WithHint("litterbox update %s --conflicts markers", p.record.Name)
	}
	if result.OntoRef = request.Onto; request.Onto == "" {
		if result.OntoRef = baseRef(p.record); result.OntoRef == "" {
			return result, fault.New(fault.Invalid, "cannot tell what to update sandbox %q to: it did not begin on a branch", p.record.Name).
				WithHint("litterbox update %s --onto main", p.record.Name)
		}
	}
	repo, err := git.Open(ctx, request.Dir) // HEAD is that of this checkout
	if err != nil {
		return result, err
	}
	if result.Onto, _, err = repo.Resolve(ctx, result.OntoRef); err != nil {
		return result, err
	}
	ctx, call, err := e.recordIn(ctx, p, "update", map[string]any{"onto": result.OntoRef, "rebase": request.Rebase, "markers": request.Markers})
	if err != nil {
		return result, err
	}
	defer func() { err = call.end(result.Commit, nil, err) }()
	stream, err := e.running(ctx, p, false)
	if err != nil {
		return result, err
	}
	if err := stream.Close(); err != nil {
		return result, err
	}
	e.catchUp(ctx, p, false)
	if err := e.settle(ctx, p); err != nil {
		return result, err
	}
	return result, e.renew(ctx, p, request, &result)
}

// renew moves the branch and has the files follow. Once the branch has moved it is
// finished; killed there, the next command lets the files follow, and another
// update the git inside.
func (e *Engine) renew(ctx context.Context, p *place, request UpdateRequest, result *Updated) error {
	defer e.busy("updating " + p.record.Name)()
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return err
	}
	defer unlock()
	fresh, err := p.store.Sandbox(p.record.ID)
	if err != nil {
		return err
	}
	*p.record = *fresh
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil {
		return err
	}
	result.Commit = tip
	contains, err := p.repo.IsAncestor(ctx, result.Onto, tip)
	if err != nil {
		return err
	}
	if !contains {
		if result.Taken, err = p.repo.CountBetween(ctx, tip, result.Onto); err != nil {
			return err
		}
		if err := e.renewBranch(ctx, p, request, result); err != nil {
			return err
		}
	}
	ctx = context.WithoutCancel(ctx)
	done, err := e.follow(ctx, p)
	if err != nil {
		return err
	}
	p.noteStayed(done)
	result.Changed = done.changed
	result.Stayed = append(result.Stayed, done.stayed...)
	e.updateInnerGit(ctx, p)
	return nil
}

func (e *Engine) renewBranch(ctx context.Context, p *place, request UpdateRequest, result *Updated) error {
	iteration := &sandbox.Iteration{Number: p.record.Iterations + 1, Kind: "update", StartedAt: time.Now()}
	verb := "merge"
	if request.Rebase {
		verb = "rebase"
	}
	moved, err := branch.Renew(ctx, p.repo, branch.RenewRequest{
		ID: p.record.ID, Branch: p.record.Branch, Onto: result.Onto, Rebase: request.Rebase, Markers: request.Markers,
		Author:   git.Signature{Name: p.record.Author.Name, Email: p.record.Author.Email, When: time.Now()},
		Trailers: e.trailers(ctx, p.record.Name, iteration),
		Message: func(conflicts []string) (string, string) {
			subject := "Merge " + shownRef(result) + " into " + p.record.Branch
			if len(conflicts) == 0 {
				return subject, ""
			}
			return subject, "Files with conflict markers:\n\n\t" + strings.Join(conflicts, "\n\t")
		},
		Progress: func(done, total int) {
			if e.Progress != nil {
				e.Progress("rebasing "+p.record.Name, done, total)
			}
		},
	})
	var conflict *branch.ConflictError
	if errors.As(err, &conflict) {
		hint := "litterbox update %s --conflicts markers"
		if request.Rebase {
			hint = "litterbox update %s"
		}
		return fault.Wrap(fault.Conflict, conflict, "cannot %s %s into sandbox %q", verb, result.OntoRef, p.record.Name).WithHint(hint, p.record.Name)
	}
	if err != nil {
		return fault.Wrap("", err, "cannot %s %s into sandbox %q", verb, result.OntoRef, p.record.Name)
	}
	ctx = context.WithoutCancel(ctx)
	result.Commit, result.History, result.Before, result.Number = moved.Tip, moved.History, moved.Before, iteration.Number
	result.Conflicts = append(result.Conflicts, moved.Conflicts...)
	result.Replayed = len(moved.Replayed)
	iteration.Commit, iteration.Changed = moved.Tip, result.Taken
	iteration.Message = "update to " + shownRef(result) + " by " + verb
	if len(moved.Conflicts) > 0 {
		iteration.Notes = []string{"conflict markers are in " + joined(moved.Conflicts)}
	}
	iteration.Duration = time.Since(iteration.StartedAt)
	if err := p.store.AppendIteration(p.record.ID, iteration); err != nil {
		return err
	}
	err = e.update(ctx, p, func(r *sandbox.Sandbox) {
		milestone := moved.Tip // what came after the last one stands as steps
		switch replayed, ok := moved.Replayed[r.Milestone]; {
		case r.Milestone == r.From() || moved.FastForward:
			milestone = result.Onto
		case ok:
			milestone = replayed
		}
		// Last stays: the files have not followed yet.
		r.Iterations, r.Milestone, r.Onto, r.OntoRef, r.Apart = iteration.Number, milestone, result.Onto, result.OntoRef, true
	})
	if err != nil {
		return err
	}
	e.emit(ctx, p, event(sandbox.EventUpdated, 0, "onto", result.Onto, "commit", moved.Tip, "conflicts", itoa(len(moved.Conflicts))))
	return nil
}

// shownRef is the new base as people name it.
func shownRef(result *Updated) string {
	if git.IsOid(result.OntoRef) {
		return result.OntoRef[:12]
	}
	return fmt.Sprintf("%s (%s)", result.OntoRef, result.Onto[:12])
}
