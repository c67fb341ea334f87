package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

type commitOptions struct {
	onlyIfChanged bool
	ran           bool   // a command has just ended in the place, which has files therefore
	ahead         *ahead // for the first question
}

// commit puts the workspace as it is now onto the branch as one iteration,
// after the commits that the agent made itself. It completes iteration and
// reports whether there was a commit.
func (e *Engine) commit(ctx context.Context, p *place, iteration *sandbox.Iteration, options commitOptions) (bool, []string, error) {
	known := options.ran && p.far()
	if !known {
		if _, err := e.hasFiles(ctx, p); err != nil {
			return false, nil, err
		}
	}
	committed, packing, notes, err := e.commitLocked(ctx, p, iteration, options)
	if known && errors.Is(err, workspace.ErrUnknown) { // it has just gone
		if _, err := e.hasFiles(ctx, p); err != nil {
			return false, nil, err
		}
		committed, packing, notes, err = e.commitLocked(ctx, p, iteration, options)
	}
	if err != nil || packing == git.PackingNone {
		return committed, notes, err
	}
	// Housekeeping of the object store; a failure costs space, not work.
	if err := e.lookAfterPacks(ctx, p, packing); err != nil {
		notes = append(notes, "could not pack the branch's objects: "+err.Error())
	}
	return committed, notes, nil
}

// lookAfterPacks lets the keeper join the small packs that commits leave, while no
// command waits. Where it does not keep up, or does not run, it is done here: more
// packs than git likes would slow every command.
func (e *Engine) lookAfterPacks(ctx context.Context, p *place, packing git.Packing) error {
	if packing == git.PackingOverdue {
		return p.repo.Consolidate(ctx, git.Consolidation{State: p.deltaFile(), Lock: p.store.LocksOf(p.record.ID)})
	}
	stream, err := p.dial(ctx)
	if err != nil {
		return nil // not running
	}
	defer stream.Close()
	return wire.WriteJSON(stream, wire.KindRequest, wire.Request{Version: wire.Version, Op: keeper.OpPack})
}

func (e *Engine) commitLocked(ctx context.Context, p *place, iteration *sandbox.Iteration, options commitOptions) (bool, git.Packing, []string, error) {
	const none = git.PackingNone
	unlock, err := p.store.Lock(ctx, p.record.ID, "commit")
	if err != nil {
		return false, none, nil, err
	}
	defer unlock()
	fresh, err := p.store.Sandbox(p.record.ID)
	if errors.Is(err, os.ErrNotExist) {
		return false, none, nil, cmp.Or(e.goneUnder(p, "its changes were to be committed"), err)
	}
	if err != nil {
		return false, none, nil, err
	}
	if fresh.State == sandbox.Deleting {
		return false, none, nil, cmp.Or(e.goneUnder(p, "its changes were to be committed"), e.unfinished(fresh))
	}
	*p.record = *fresh
	if iteration.Number == 0 {
		iteration.Number = p.record.Iterations + 1
	}
	agent, notes := e.agentCommits(ctx, p, options.ahead)
	modules, moduleNotes := e.moduleCommits(ctx, p)
	notes = append(notes, moduleNotes...)
	if behind := p.worktree().Behind(); behind != "" {
		notes = append(notes, behind)
	}
	request := e.importRequest(p)
	request.Agent = agent
	request.Modules = modules.stand
	request.OnlyIfChanged = options.onlyIfChanged && (agent == nil || len(agent.Commits) == 0)
	request.Subject = firstLine(iteration.Message, iteration.Kind+": "+iteration.Command)
	request.Body = body(iteration)
	request.Trailers = e.trailers(ctx, p.record.Name, iteration)
	result, err := branch.Import(ctx, p.repo, request)
	if err != nil {
		return false, none, notes, fault.Wrap("", err, "cannot commit what sandbox %q holds", p.record.Name)
	}
	notes = append(notes, result.Notes...)
	p.left = result.Left
	for _, path := range modules.left {
		p.left.Add(path)
	}
	if !result.Written {
		return false, none, notes, nil
	}
	iteration.Commit, iteration.Changed, iteration.Paths, iteration.Notes = result.Commit, result.Changed, result.Paths, notes
	iteration.Message = request.Subject
	if iteration.Agent != "" {
		if costs, err := e.costs(); err != nil {
			notes = append(notes, err.Error()) // the commit counts all the same
		} else if cost := costs[p.record.ID]; cost != nil {
			iteration.Cost = int64(cost.Cost)
		}
	}
	made(ctx, result.Commit)
	if err := p.store.AppendIteration(p.record.ID, iteration); err != nil {
		return true, none, notes, err
	}
	e.emit(ctx, p, event(sandbox.EventIteration, iteration.Cycle, "number", itoa(iteration.Number), "commit", iteration.Commit,
		"message", iteration.Message, "changed", itoa(iteration.Changed)))
	number := iteration.Number
	if err := e.update(ctx, p, func(r *sandbox.Sandbox) {
		r.Iterations = max(r.Iterations, number)
		r.Last = result.Commit
		r.Apart = result.Apart
		if agent != nil {
			r.InnerHead = agent.Head
		}
		modules.remember(r)
	}); err != nil {
		return true, none, notes, err
	}
	return true, result.Packing, notes, nil
}

func (e *Engine) importRequest(p *place) branch.ImportRequest {
	request := branch.ImportRequest{
		Branch: p.record.Branch, State: p.deltaFile(), Base: p.record.Base, Last: p.record.Last,
		Author:    git.Signature{Name: p.record.Author.Name, Email: p.record.Author.Email, When: time.Now()},
		Workspace: e.workspace(p),
		Strict:    p.store.Strict(),
		Secrets:   p.store.Redacts(),
	}
	return request
}

// agentCommits fetches the commits that the agent made in its own repository since
// the last time, as a pack through a quarantine. A problem with them becomes a
// note: the workspace is committed all the same.
func (e *Engine) agentCommits(ctx context.Context, p *place, ahead *ahead) (*branch.Received, []string) {
	head, err := ahead.head(ctx, p)
	if err == nil && head.Damage != "" {
		return nil, []string{p.aboutDamage(head.Damage)}
	}
	if err != nil || head.Commit == "" {
		return nil, nil // if it does not run, they are fetched at the next start
	}
	have, err := branch.InnerHead(ctx, p.repo, p.deltaFile(), p.record.Branch)
	if err != nil {
		return nil, []string{"the agent's own commits were not taken over: " + err.Error()}
	}
	if head.Commit == have || have == "" && head.Commit == p.record.Base {
		return nil, nil
	}
	err = p.quarantine().Refused(head.Commit)
	var received *branch.Received
	if err == nil {
		received, err = e.receive(ctx, p, head.Commit, have)
	}
	if err != nil {
		note := "the agent's own commits were not taken over: " + err.Error()
		if fault.KindOf(err) == fault.Denied {
			note += " (its files are committed without them; inside, git reset --soft refs/litterbox/base begins a new history)"
		}
		return nil, []string{note}
	}
	// Passed on even without commits: the position of the agent's history is then
	// remembered, and not fetched again.
	return received, received.Notes
}

// receive takes the agent's history up to want. Commits that the base reaches are
// not packed again: they may be gigabytes, and a partial clone lacks some of
// them.
func (e *Engine) receive(ctx context.Context, p *place, want, have string) (*branch.Received, error) {
	since := have
	if since == "" {
		since = p.record.Base
	}
	received, err, exported := e.receiveSince(ctx, p, want, have, since)
	if fault.KindOf(exported) == fault.Conflict {
		// git inside does not know that commit: the agent made the repository again.
		received, err, _ = e.receiveSince(ctx, p, want, have, "")
	}
	return received, err
}

// receiveSince takes what want reaches and since does not; exported is the
// sandbox's report about its part.
func (e *Engine) receiveSince(ctx context.Context, p *place, want, have, since string) (received *branch.Received, err, exported error) {
	stream, err := p.dial(ctx)
	if err != nil {
		return nil, err, nil
	}
	defer stream.Close()
	// A program that calls itself git inside could hold its pipe for ever.
	ctx, cancel := context.WithTimeout(ctx, exportPatience)
	defer cancel()
	pack, writer := io.Pipe()
	said := make(chan error, 1)
	go func() {
		err := wire.Export(ctx, stream, since, want, writer)
		said <- err
		writer.CloseWithError(err)
	}()
	received, err = branch.Receive(ctx, p.repo, p.quarantine(), pack, want, have)
	pack.Close() // ends the export when the quarantine has seen enough
	select {
	case exported = <-said:
	default: // not the first error
	}
	return received, err, exported
}

// quarantine is where the agent's own commits are looked at.
func (p *place) quarantine() branch.Quarantine {
	q := branch.Quarantine{Dir: p.path("received"), Base: p.record.Base, State: p.deltaFile()}
	if n := len(p.record.Layers); n > 0 { // none before its first start
		q.GitLayer = p.record.Layers[n-1]
	}
	return q
}

// exportPatience bounds how long the sandbox may take to pack its own commits.
const exportPatience = 2 * time.Minute

// body is the part of a commit message below its first line: the rest of what
// was said, and the command.
func body(iteration *sandbox.Iteration) string {
	if iteration.Prompt != "" {
		if body := promptBody(iteration.Prompt); body != iteration.Message {
			return body
		}
		return ""
	}
	_, said, _ := strings.Cut(strings.TrimSpace(iteration.Message), "\n")
	said = strings.TrimSpace(said)
	if iteration.Command == "" {
		return said
	}
	if said != "" {
		said += "\n\n"
	}
	return said + "$ " + iteration.Command
}

// trailers are machine-readable lines at the end of a commit message.
func (e *Engine) trailers(ctx context.Context, name string, iteration *sandbox.Iteration) []branch.Trailer {
	all := []branch.Trailer{
		{Key: "Litterbox-Sandbox", Value: name},
		{Key: "Litterbox-Iteration", Value: itoa(iteration.Number)},
	}
	switch iteration.Kind {
	case "exec", "shell", "setup", "agent", "hook":
		all = append(all, branch.Trailer{Key: "Litterbox-Exit-Code", Value: itoa(iteration.ExitCode)})
	case "recovered":
		all = append(all, branch.Trailer{Key: "Litterbox-Recovered", Value: "true"})
	}
	all = append(all, agentTrailers(iteration)...)
	if hash := e.auditHash(ctx); hash != "" {
		all = append(all, branch.Trailer{Key: auditTrailer, Value: hash})
	}
	return all
}

// subjectLength is where a derived first line is cut, in characters.
const subjectLength = 72

// firstLine is the first line of a message, or one derived when it is empty.
func firstLine(message, derived string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if line != "" {
		return line
	}
	line, _, _ = strings.Cut(derived, "\n")
	if runes := []rune(line); len(runes) > subjectLength {
		line = string(runes[:subjectLength-1]) + "…"
	}
	return line
}

// counted is a number with the plural of what it counts where there are more.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return itoa(n) + " " + what
}

func itoa(n int) string { return strconv.Itoa(n) }

// settle commits the uncommitted changes in the workspace: the work of cycles
// that died, of background processes and of shells that are still open.
func (e *Engine) settle(ctx context.Context, p *place) error {
	defer e.busy("committing what " + p.record.Name + " holds")()
	if err := e.recover(ctx, p); err != nil {
		return err
	}
	if has, err := e.hasFiles(ctx, p); err != nil || !has {
		return err // without files there is only the branch
	}
	iteration := &sandbox.Iteration{Kind: "outside", Message: "changes made outside of a command", StartedAt: time.Now()}
	_, notes, err := e.commit(ctx, p, iteration, commitOptions{onlyIfChanged: true})
	p.note(notes...)
	return err
}
