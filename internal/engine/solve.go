package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// solve has the user's own tool solve the conflicts of a merge, beside the
// checkout.
func (e *Engine) solve(ctx context.Context, p *place, repo *git.Repository, scratch string, preview landing.Preview, request MergeRequest, s landing.Streams) (*landing.Solution, error) {
	solution, left, err := landing.Solve(ctx, repo, scratch, preview.Head, preview.Tip, request.Args, request.Solve, s)
	if err != nil || len(left) == 0 {
		return solution, err
	}
	return nil, fault.New(fault.Conflict, "nothing was merged: conflicts are left in %s (%s)", counted(len(left), "file"), strings.Join(left[:min(3, len(left))], ", ")).
		WithHint("litterbox mergetool %s, or litterbox merge %s and resolve them in your checkout", p.record.Name, p.record.Name)
}

func removeScratch(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot remove %q", dir)
	}
	return nil
}

// unsaid holds git's messages about conflicts that are solved already.
type unsaid struct {
	words *bytes.Buffer
	aloud landing.Streams
}

// quietly hides git's messages from the user.
func quietly(o *landing.MergeOptions, keep bool) unsaid {
	u := unsaid{&bytes.Buffer{}, o.Streams}
	if keep {
		o.Stdout, o.Stderr = u.words, u.words
	}
	return u
}

// finishSolved puts the solution into the merge that stopped at its conflicts, and
// finishes it as a later merge would. Where it cannot, the merge is taken back.
func (e *Engine) finishSolved(ctx context.Context, p *place, repo *git.Repository, solution *landing.Solution, preview landing.Preview, request MergeRequest, o landing.MergeOptions, said string, result *MergeResult) (err error) {
	under, err := landing.MergeInProgress(ctx, repo)
	if err != nil {
		return err
	}
	if len(under.Unmerged) == 0 { // it went on without conflicts, or git refused
		if o.Stderr != nil {
			fmt.Fprint(o.Stderr, said)
		}
		return nil
	}
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, landing.TakeBack(context.WithoutCancel(ctx), repo, preview.Head), landing.PutBack(context.WithoutCancel(ctx), repo), e.forget(p))
	}()
	if err := solution.PutInPlace(ctx, repo); err != nil {
		return err
	}
	state, err := landing.AfterMerge(ctx, repo)
	if err != nil {
		return err
	}
	result.ExitCode = 0
	if !state.Waits || slices.Contains(request.Args, "--no-commit") {
		return nil // for a commit of the human's
	}
	made, err := e.finishMerge(ctx, p, repo, preview.Tip, request, o)
	result.ExitCode, result.Notes = made.ExitCode, append(result.Notes, made.Notes...)
	if len(made.Risks) > 0 {
		result.Risks = append(result.Risks, made.Risks...)
	}
	return err
}
