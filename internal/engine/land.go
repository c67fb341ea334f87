package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// mergeTip merges tip into the checkout as it is now. Only what was approved lands:
// the commit is merged by its id, and when the checkout has moved on meanwhile, the
// merge is judged again.
func (e *Engine) mergeTip(ctx context.Context, p *place, repo *git.Repository, tip string, request MergeRequest, streams landing.MergeOptions) (result MergeResult, err error) {
	if landing.ReadMergeFlags(request.Args).Resumes { // nothing is under way: git says so
		result.ExitCode, err = landing.RunMerge(ctx, repo, request.Args, landing.MergeTarget{Branch: p.record.Branch}, streams)
		return result, err
	}
	preview, approved, err := e.approvedPreview(ctx, p, repo, tip, request)
	result.Risks = shown(approved)
	if err != nil {
		return result, err
	}
	if preview.Refusal != nil {
		if request.Stderr != nil {
			fmt.Fprintln(request.Stderr, preview.Refusal.Message)
		}
		result.ExitCode = preview.Refusal.ExitCode
		return result, nil
	}
	var solution *landing.Solution
	if len(preview.Conflicts) > 0 && request.Solve != nil {
		scratch := p.path("solve")
		defer func() { err = errors.Join(err, removeScratch(scratch)) }()
		if solution, err = e.solve(ctx, p, repo, scratch, preview, request, streams.Streams); err != nil {
			return result, err
		}
	}
	if err := e.keepHooksOff(ctx, repo, preview.Changes, request, &streams, &result); err != nil {
		return result, err
	}
	target := landing.MergeTarget{Verb: request.verb(), Branch: p.record.Branch, Commit: tip, NeedsCommit: !preview.FastForward && !preview.UpToDate}
	aside, err := landing.SetAside(ctx, repo, preview.Changes, target, request.Args)
	if err != nil {
		return result, err
	}
	staged, _, err := landing.Made(ctx, repo, preview.Head)
	waits := false
	said := quietly(&streams, solution != nil)
	if err == nil {
		result.ExitCode, err = landing.RunMerge(ctx, repo, request.Args, target, streams)
	}
	if err == nil {
		waits, err = e.checkMade(ctx, p, repo, judged{preview, approved, staged}, request, &result)
	}
	if err = errors.Join(err, e.endAside(aside, waits, &result)); err != nil || solution == nil {
		return result, err
	}
	streams.Streams = said.aloud
	return result, e.finishSolved(ctx, p, repo, solution, preview, request, streams, said.words.String(), &result)
}

// approvedPreview judges the result of the merge, until the checkout stays
// unchanged from the judgement to the answer. It returns the approved risks, or
// beside an error those that were not approved.
func (e *Engine) approvedPreview(ctx context.Context, p *place, repo *git.Repository, tip string, request MergeRequest) (landing.Preview, []landing.Risk, error) {
	var approved []landing.Risk
	for range 5 {
		end := e.busy("rehearsing the merge of " + p.record.Name)
		preview, err := landing.Rehearse(ctx, repo, p.path("preview"), tip, request.Args)
		end()
		if err != nil {
			return preview, nil, err
		}
		if unknown := without(preview.Risks, approved); len(unknown) > 0 {
			if err := e.approve(preview.Risks, request, p.record.Name); err != nil {
				return preview, preview.Risks, err
			}
			approved = preview.Risks
		}
		still, err := landing.HeadIs(ctx, repo, preview.Head)
		if err != nil || still {
			return preview, approved, err
		}
	}
	return landing.Preview{}, nil, fault.New(fault.Conflict, "cannot %s %q: HEAD of your checkout keeps moving", request.verb(), p.record.Name).
		WithHint("litterbox %s %s, when nothing else commits there", request.verb(), p.record.Name)
}

// judged is what was known and approved before git merged.
type judged struct {
	landing.Preview
	approved []landing.Risk
	staged   []landing.Change // by the human, and none of the merge's
}

// checkMade compares git's result with what was approved; waits reports whether the
// merge is left for the human to finish. A difference comes from a commit or a hook
// in between. If it brings a risk that was not approved, the merge is taken back.
func (e *Engine) checkMade(ctx context.Context, p *place, repo *git.Repository, before judged, request MergeRequest, result *MergeResult) (waits bool, err error) {
	state, err := landing.AfterMerge(ctx, repo)
	if err != nil {
		return false, err
	}
	waits = state.Waits
	if waits {
		if err := e.remember(p, before.Tip, before.approved, before.Conflicts); err != nil {
			return waits, err
		}
	}
	base := before.Head
	switch moved := state.Head != before.Head; {
	case !moved && !waits && !state.Squashed:
		return waits, nil // git did nothing
	case moved && (state.Head == before.Tip || state.Tree == before.Tree):
		return waits, nil
	case moved && len(state.Parents) > 0 && !waits:
		base = state.Parents[0]
	case moved:
		base = state.Head
	}
	changes, _, err := landing.Made(ctx, repo, base)
	if err != nil {
		return waits, err
	}
	changes = slices.DeleteFunc(changes, func(c landing.Change) bool { return slices.Contains(before.staged, c) })
	risks, err := landing.JudgeMade(ctx, repo, changes)
	if err != nil {
		return waits, err
	}
	unknown := without(risks, before.approved)
	if len(unknown) == 0 {
		return waits, nil
	}
	result.Risks = append(result.Risks, shown(unknown)...)
	if request.Yes {
		e.warn(unknown)
		return waits, nil
	}
	if len(before.staged) > 0 { // taking it back would take those too
		return waits, fault.New(fault.Conflict, "the merge of %q brought %s, which was not approved: your checkout changed meanwhile", p.record.Name, listed(unknown)).
			WithHint("git diff %s", base)
	}
	if err := landing.TakeBack(ctx, repo, base); err != nil {
		return waits, err
	}
	return false, fault.New(fault.Conflict, "cannot %s %q: your checkout changed meanwhile, and the result held %s, which was not approved; the merge was taken back",
		request.verb(), p.record.Name, listed(unknown)).WithHint("litterbox %s %s", request.verb(), p.record.Name)
}

// endAside brings back untracked files that git has not replaced.
func (e *Engine) endAside(aside *landing.Aside, waits bool, result *MergeResult) error {
	if waits {
		kept, err := aside.Keep()
		for _, path := range kept {
			result.Notes = append(result.Notes, fmt.Sprintf("your own untracked %q is kept while the merge is under way", path))
		}
		return err
	}
	kept, err := aside.Restore()
	for _, path := range kept {
		result.Notes = append(result.Notes, fmt.Sprintf("your own untracked file was written to meanwhile: it is %q now", path))
	}
	return err
}

// finishMerge goes on with a merge of tip whose conflicts are resolved. The index
// lands, so the index is judged: everything in it that was not approved when the
// merge began.
func (e *Engine) finishMerge(ctx context.Context, p *place, repo *git.Repository, tip string, request MergeRequest, streams landing.MergeOptions) (result MergeResult, err error) {
	state, err := landing.AfterMerge(ctx, repo)
	if err != nil {
		return result, err
	}
	changes, _, err := landing.Made(ctx, repo, state.Head)
	if err != nil {
		return result, err
	}
	risks, err := landing.JudgeMade(ctx, repo, changes)
	if err != nil {
		return result, err
	}
	if unknown := e.notRemembered(p, tip, risks); len(unknown) > 0 {
		result.Risks = shown(unknown)
		if err := e.approve(unknown, request, p.record.Name); err != nil {
			return result, err
		}
	}
	if err := e.keepHooksOff(ctx, repo, changes, request, &streams, &result); err != nil {
		return result, err
	}
	streams.NoEdit = true
	result.ExitCode, err = landing.RunMerge(ctx, repo, []string{"--continue"}, landing.MergeTarget{Branch: p.record.Branch, Commit: tip}, streams)
	if err == nil && result.ExitCode == 0 {
		err = errors.Join(landing.PutBack(ctx, repo), e.forget(p))
	}
	return result, err
}

// keepHooksOff has git run without hooks when the changes bring any, unless
// the user asked for them by name.
func (e *Engine) keepHooksOff(ctx context.Context, repo *git.Repository, changes []landing.Change, request MergeRequest, streams *landing.MergeOptions, result *MergeResult) error {
	if request.RunHooks {
		return nil
	}
	atRisk, why, err := landing.HooksAtRisk(ctx, repo, changes)
	if err == nil && atRisk {
		streams.HooksOff = true
		result.Notes = append(result.Notes, "git runs with hooks off: "+why+" (--run-hooks lifts that)")
	}
	return err
}

// without gives the risks that are not among others, by path and content.
func without(risks, others []landing.Risk) []landing.Risk {
	var left []landing.Risk
	for _, risk := range risks {
		known := false
		for _, other := range others {
			known = known || risk.Same(other)
		}
		if !known {
			left = append(left, risk)
		}
	}
	return left
}

func shown(risks []landing.Risk) []Risk {
	list := make([]Risk, len(risks))
	for i, risk := range risks {
		list[i] = Risk{Path: risk.Path, Class: string(risk.Class), Reason: risk.Reason, Rank: risk.Class.Rank()}
	}
	return list
}

// warnings is how many risks are notes of their own; diff --json and merge
// --json name all.
const warnings = 10

// warn names changed files that could run code on the host.
func (e *Engine) warn(risks []landing.Risk) {
	if e.Note == nil {
		return
	}
	for i, risk := range risks {
		if i == warnings {
			e.Note(fmt.Sprintf("%d more files can run code on this machine: --json names them", len(risks)-i))
			return
		}
		e.Note(fmt.Sprintf("%q can run code on this machine: %s", risk.Path, risk.Reason))
	}
}

// listed names the most urgent risks in one line.
func listed(risks []landing.Risk) string {
	var names []string
	for i, risk := range risks {
		if i == warnings {
			names = append(names, fmt.Sprintf("and %d more", len(risks)-i))
			break
		}
		names = append(names, fmt.Sprintf("%q (%s)", risk.Path, risk.Reason))
	}
	return strings.Join(names, ", ")
}

// approve names the files that could run code on the host, and asks.
func (e *Engine) approve(risks []landing.Risk, request MergeRequest, name string) error {
	if len(risks) == 0 {
		return nil
	}
	if request.Yes {
		e.warn(risks)
		return nil
	}
	if request.Confirm == nil {
		return fault.New(fault.Denied, "merge of %q needs confirmation: it changes files that can run code on this machine: %s", name, listed(risks)).
			WithHint("look at litterbox diff %s, then repeat with --yes", name)
	}
	yes, err := request.Confirm(shown(risks))
	if err != nil {
		return err
	}
	if !yes {
		return fault.New(fault.Canceled, "nothing was merged")
	}
	return nil
}
