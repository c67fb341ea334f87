package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

const (
	// endGrace is the time that programs get between TERM and KILL before a merge
	// or a deletion.
	endGrace = 10 * time.Second
	// servicesGrace bounds a guest's wait for services and killed processes.
	servicesGrace = 30 * time.Second
	// clientPatience is how long clients may take to commit what their ended
	// commands did.
	clientPatience = 30 * time.Second
)

// readyToLand says what is at work in a sandbox whose state is about to be taken.
// Before a merge that deletes it, nothing may be at work; with Stop it is ended.
func (e *Engine) readyToLand(ctx context.Context, p *place, repo *git.Repository, request MergeRequest) (before MergeResult, err error) {
	if !request.Delete {
		before.Running = e.stillAtWork(ctx, p)
		return before, nil
	}
	work, err := e.workBefore(ctx, p, request.Stop)
	if err != nil {
		return before, err
	}
	held := holding(work)
	if err := mayEnd(p.record.Name, "merge", held, request.Stop, request.ConfirmStop); err != nil {
		return before, err
	}
	if err := e.end(ctx, p, "merge", landsOn(repo)); err != nil {
		return before, err
	}
	if len(held) == 0 {
		return before, nil
	}
	before.Ended = work
	return before, e.quiesce(ctx, p)
}

// afterLanding completes a result by what readyToLand found, and stops a
// sandbox that was to be deleted and stays.
func (e *Engine) afterLanding(ctx context.Context, p *place, request MergeRequest, before MergeResult, result *MergeResult) error {
	result.Running, result.Ended = before.Running, append(before.Ended, result.Ended...)
	if !request.Delete || result.Deleted {
		return nil
	}
	p.notes = nil
	err := e.stays(ctx, p, result.Ended)
	result.Notes = append(result.Notes, p.notes...)
	return err
}

// workBefore is atWork, without its patience where the answer is to end it all.
func (e *Engine) workBefore(ctx context.Context, p *place, end bool) ([]Work, error) {
	if !end {
		return e.atWork(ctx, p)
	}
	work, _, err := e.lookAtWork(ctx, p, e.inside)
	return work, err
}

// stillAtWork is the work that goes on while a sandbox's state is taken. A failure
// to find out is a note.
func (e *Engine) stillAtWork(ctx context.Context, p *place) []Work {
	work, _, err := e.lookAtWork(ctx, p, e.insideNow)
	if err != nil {
		p.note("what is at work in sandbox " + p.record.Name + " is not known: " + err.Error())
	}
	return holding(work)
}

// readyToDelete makes sure that nothing is at work in a sandbox that is about to be
// deleted, or ends it when that was asked for. With Force, work that cannot be
// ended in order is not an obstacle.
func (e *Engine) readyToDelete(ctx context.Context, p *place, request DeleteRequest) ([]Work, error) {
	work, err := e.workBefore(ctx, p, request.Stop)
	if err != nil && !request.Force {
		return nil, err
	}
	held := holding(work)
	if request.Left {
		held = attended(work)
	}
	if err := mayEnd(p.record.Name, "delete", held, request.Stop, request.ConfirmStop); err != nil {
		return nil, err
	}
	if err := e.end(ctx, p, "delete", ""); err != nil && !request.Force {
		return nil, err
	}
	if len(work) == 0 {
		return nil, nil
	}
	if err := e.quiesce(ctx, p); err != nil {
		if !request.Force {
			return nil, err
		}
		p.note("what ran in the sandbox could not be ended cleanly: " + err.Error())
	}
	return work, nil
}

// readyToStop lists what a stop is about to end. A sandbox that cannot be asked is
// stopped all the same: stop is the remedy there.
func (e *Engine) readyToStop(ctx context.Context, p *place, request StopRequest) ([]Work, error) {
	work, err := e.awaitWork(ctx, p, e.insideNow)
	if err != nil {
		p.note("what runs in sandbox " + p.record.Name + " is not known: " + err.Error())
	}
	if held := attended(work); len(held) > 0 && request.ConfirmStop != nil {
		if err := mayEnd(p.record.Name, "stop", held, false, request.ConfirmStop); err != nil {
			return nil, err
		}
	}
	// A session keeps its hold, and continues with its next call.
	work = slices.DeleteFunc(work, func(w Work) bool { return w.Kind == WorkAgent })
	return work, e.end(ctx, p, "stop", "")
}

// lastWork ends services in a sandbox whose branch has landed at tip, and says
// why the sandbox must stay; "" when it may go.
func (e *Engine) lastWork(ctx context.Context, p *place, tip string, result *MergeResult) (string, error) {
	work, err := e.atWork(ctx, p)
	if err != nil {
		return "", err
	}
	// A session that holds the sandbox does nothing in it at this moment: its
	// commands are listed separately, and its changes have moved the branch.
	held := slices.DeleteFunc(holding(work), func(w Work) bool { return w.Kind == WorkAgent })
	if len(held) > 0 {
		return "work has started in it meanwhile: " + nameWork(held), nil
	}
	if len(work) > 0 {
		result.Ended = append(result.Ended, work...)
		if err := e.quiesce(ctx, p); err != nil {
			return "", err
		}
		if err := e.settle(ctx, p); err != nil {
			return "", err
		}
	}
	now, err := p.repo.Tip(ctx, p.record.Branch)
	if err == nil && now != tip {
		return "its branch has moved since it was merged", nil
	}
	return "", err
}

// undisturbed fails when a run has begun in a sandbox that is already marked as
// being deleted, or when its branch is no longer at tip. Without a tip it does not
// look.
func (e *Engine) undisturbed(ctx context.Context, p *place, tip string) error {
	if tip == "" {
		return nil
	}
	cycles, err := e.liveCycles(ctx, p)
	if err != nil {
		return err
	}
	now, err := p.repo.Tip(ctx, p.record.Branch)
	if err != nil {
		return err
	}
	if len(cycles) > 0 || now != tip {
		return fault.New(fault.Conflict, "cannot delete sandbox %q: work has just begun in it", p.record.Name).
			WithHint("litterbox status %s", p.record.Name)
	}
	return nil
}

// landsOn names the branch of the user's checkout.
func landsOn(repo *git.Repository) string {
	if repo.HeadRef != "" {
		return strings.TrimPrefix(repo.HeadRef, "refs/heads/")
	}
	return repo.Head[:min(len(repo.Head), 12)]
}

// end records who ends a sandbox, for the clients that work in it.
func (e *Engine) end(ctx context.Context, p *place, verb, into string) error {
	me, err := self()
	if err != nil {
		return err
	}
	ending := &sandbox.Ending{Name: p.record.Name, Verb: verb, Into: into, By: callerOf(ctx).User, At: time.Now(), Holder: me}
	if call := openCall(ctx); call != nil && call.entry.Who.Client != "" {
		ending.By = call.entry.Who.Client
	}
	return p.store.SaveEnding(p.record.GitDir, p.record.ID, ending)
}

// quiesce ends everything inside a sandbox in order and waits until the clients
// have committed what their commands did. The guest stays and can be asked for
// the agent's commits; it runs nothing more, so the sandbox is to be stopped or
// deleted afterwards.
func (e *Engine) quiesce(ctx context.Context, p *place) error {
	if e.pausedByUser(ctx, p) {
		// A paused process cannot end in order.
		if _, err := e.resumeOne(ctx, p); err != nil {
			return err
		}
	}
	stream, err := p.dial(ctx)
	if err != nil {
		// Without a keeper everything in it still runs.
		if state, _ := e.state(ctx, p.record); state == sandbox.Running {
			if stream, err = e.running(ctx, p, false); err != nil {
				return err
			}
		}
	}
	if stream != nil {
		if err := e.askToEnd(ctx, p, stream); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(clientPatience); ; time.Sleep(workPause) {
		cycles, err := e.liveCycles(ctx, p)
		if err != nil || len(cycles) == 0 {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			// Their commands are over. Their work is committed with the rest.
			p.note("a client has not committed its command within " + clientPatience.String() + ": " + cycles[0].Command)
			return nil
		}
	}
}

// askToEnd has the guest end everything. A guest that does not know how is
// stopped.
func (e *Engine) askToEnd(ctx context.Context, p *place, stream *net.UnixConn) error {
	defer stream.Close()
	patient, cancel := context.WithTimeout(ctx, endGrace+servicesGrace)
	defer cancel()
	err := wire.Quiesce(patient, stream, endGrace)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case fault.KindOf(err) == fault.Unsupported:
		// The agent's history can be asked for only while it runs.
		return errors.Join(e.settle(ctx, p), e.stop(ctx, p))
	}
	return fault.Wrap("", err, "cannot end what runs in sandbox %q", p.record.Name).WithHint("litterbox stop %s", p.record.Name)
}

// stays stops a sandbox whose deletion was given up, if anything in it was ended
// for that.
func (e *Engine) stays(ctx context.Context, p *place, ended []Work) error {
	ctx = context.WithoutCancel(ctx)
	err := p.store.RemoveEnding(p.record.GitDir, p.record.ID)
	if len(ended) == 0 {
		return err
	}
	if err := errors.Join(err, e.stop(ctx, p)); err != nil {
		return err
	}
	p.note("sandbox " + p.record.Name + " is stopped" + p.withFiles() + "; its next command starts it again")
	return e.update(ctx, p, func(r *sandbox.Sandbox) { r.State = sandbox.Stopped })
}

// goneUnder is the error of a client whose sandbox was merged or deleted, or is
// being ended; nil when it is still there.
func (e *Engine) goneUnder(p *place, what string) error {
	record, err := p.store.Sandbox(p.record.ID)
	gone := errors.Is(err, fs.ErrNotExist)
	if err == nil && record.State == sandbox.Deleting {
		me, err := self()
		gone = err == nil && record.Holder != me && process.Alive(record.Holder)
	}
	ending, err := p.store.Ending(p.record.GitDir, p.record.ID)
	if err != nil || ending == nil || ending.Verb == "stop" {
		if gone {
			return fault.New(fault.NotFound, "sandbox %q was deleted while %s", p.record.Name, what)
		}
		return nil
	}
	if !gone && !process.Alive(ending.Holder) {
		return nil // it stays: that was interrupted
	}
	return fault.New(fault.NotFound, "sandbox %q %s while %s", p.record.Name, endingText(ending, gone, time.Now()), what)
}

// goneFrom is the error of a session whose sandbox is gone.
func (e *Engine) goneFrom(ctx context.Context, hold Hold) error {
	if gitDir, err := gitDirOf(ctx, hold.Path); err == nil {
		if ending, err := e.Store.Ending(gitDir, hold.ID); err == nil && ending != nil && ending.Verb != "stop" {
			return fault.New(fault.NotFound, "sandbox %q %s", hold.Name, endingText(ending, true, time.Now()))
		}
	}
	return fault.New(fault.NotFound, "sandbox %q was deleted", hold.Name)
}

// endingText says what was done by whom, and when.
func endingText(ending *sandbox.Ending, gone bool, now time.Time) string {
	did := map[string]string{"merge": "merged and deleted", "delete": "deleted", "stop": "stopped"}[ending.Verb]
	if ending.Verb == "merge" && ending.Into != "" {
		did = "merged into " + ending.Into + " and deleted"
	}
	by := cmp.Or(ending.By, "another command")
	if !gone && ending.Verb != "stop" {
		return "is being " + did + " by " + by
	}
	age := now.Sub(ending.At).Round(time.Second)
	return "was " + did + " by " + by + " " + max(age, 0).String() + " ago"
}

// cutOff says why a command was ended from outside, when it was: as its error
// when the sandbox is gone or its end is not known, else as a note.
func (e *Engine) cutOff(p *place, cycle *sandbox.Cycle, committed *sandbox.Iteration, err error) error {
	what := "this command ran"
	if committed != nil {
		what += "; what it did is committed"
	}
	if gone := e.goneUnder(p, what); gone != nil {
		return gone
	}
	ending, _ := p.store.Ending(p.record.GitDir, p.record.ID)
	if ending == nil || ending.Verb != "stop" || ending.At.Before(cycle.StartedAt) {
		return err
	}
	text := fmt.Sprintf("sandbox %q %s while %s", p.record.Name, endingText(ending, true, time.Now()), what)
	if err == nil {
		p.note(text)
		return nil
	}
	return fault.New(fault.Unavailable, "%s", text).WithHint("litterbox start %s", p.record.Name)
}

// stillThere fails when the sandbox is gone or being deleted by now.
func (e *Engine) stillThere(p *place) error {
	record, err := p.store.Sandbox(p.record.ID)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.NotFound, "sandbox %q has just been deleted", p.record.Name).WithHint("litterbox list")
	case err != nil:
		return nil // a damaged record is mended where it is needed
	case record.State == sandbox.Deleting:
		return e.unfinished(record)
	}
	return nil
}
