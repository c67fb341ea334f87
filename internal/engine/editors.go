package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/editor"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// editorKind is the kind of a cycle in which an editor's server works inside.
const editorKind = "editor"

const (
	// editorLook is how often servers of editors are looked for. A client that is
	// gone sooner is not an editor.
	editorLook = 2 * time.Second
	// editorFar is how often what an editor wrote is committed where looking at
	// files takes a listing.
	editorFar = 30 * time.Second
)

// editorPace is the pace of an editor's session: saved files are committed when
// nothing has been saved for a moment.
func editorPace() Checkpoints {
	return Checkpoints{Quiet: CheckpointQuiet, Least: checkpointLeast}
}

// AccompanyEditors stays with a client until ctx ends. While the server of an
// editor works inside, and the client is at work, there is a session of kind
// "editor", and what is written is committed at quiet moments: an editor asks for
// one connection at its beginning and works through it for hours. A sandbox that is
// stopped stays so. Errors go to the record of the session: the client is not held
// up.
//
// A client that only keeps its connection is not at work: asking for editors means
// asking the sandbox, which would then never be stopped as idle.
func (e *Engine) AccompanyEditors(ctx context.Context, place Place, who Actor, atWork func() bool) {
	for wait(ctx, editorLook) {
		if !atWork() {
			continue
		}
		p, err := e.find(ctx, place.Dir, place.Name)
		if err != nil {
			return // deleted or renamed: its connections end
		}
		if titles := e.editorsInside(ctx, p); titles != "" {
			_ = e.editorSession(ctx, p, who, titles, atWork)
		}
	}
}

// wait waits for long and reports whether ctx is still alive.
func wait(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// editorsInside names the editors whose servers work in a sandbox that runs. The
// names come from inside, so only known ones count.
func (e *Engine) editorsInside(ctx context.Context, p *place) string {
	inside, err := e.insideNow(ctx, p)
	if err != nil {
		return ""
	}
	var titles []string
	for _, name := range inside.Editors {
		if one, ok := editor.Named(name); ok && len(titles) < 8 {
			titles = append(titles, one.Title)
		}
	}
	return strings.Join(titles, ", ")
}

// editorSession is one cycle, for as long as the client is at work and a server
// works.
func (e *Engine) editorSession(ctx context.Context, p *place, who Actor, titles string, atWork func() bool) (err error) {
	ctx, call, err := e.Begin(ctx, who, Action{Name: editorKind, Sandbox: p.record.Name, Arguments: map[string]any{"editor": titles}, found: p})
	if err != nil {
		return err
	}
	var made *sandbox.Iteration
	defer func() { err = call.end(commitOf(made), nil, err) }()
	cycle, stream, err := e.beginCycle(ctx, p, editorKind, titles, "editor session", false)
	lasting := context.WithoutCancel(ctx)
	if cycle == nil {
		return err
	}
	if err == nil {
		err = stream.Close()
	}
	if err != nil {
		return errors.Join(err, e.endCycle(lasting, p, cycle, wire.Exit{}, err))
	}
	iteration := &sandbox.Iteration{Cycle: cycle.ID, Kind: editorKind, Message: "editor session: " + titles, StartedAt: time.Now()}
	end := e.checkpoints(ctx, p, cycle, ExecRequest{Checkpoints: editorPace()})
	for committed := time.Now(); wait(ctx, editorLook) && atWork() && e.editorsInside(ctx, p) != ""; {
		if p.far() && time.Since(committed) > editorFar {
			step := &sandbox.Iteration{Cycle: cycle.ID, Kind: "checkpoint", Message: iteration.Message, StartedAt: iteration.StartedAt, Duration: time.Since(iteration.StartedAt)}
			if _, _, err := e.commit(lasting, p, step, commitOptions{onlyIfChanged: true}); err != nil {
				break // the last commit says why
			}
			committed = time.Now()
		}
	}
	end()
	err = e.advance(lasting, p, cycle, sandbox.PostProcessing)
	iteration.Duration = time.Since(iteration.StartedAt)
	done, _, commitErr := e.commit(lasting, p, iteration, commitOptions{onlyIfChanged: true})
	if err = errors.Join(err, commitErr); err != nil {
		err = e.cutOff(p, cycle, nil, err)
	}
	if done {
		made = iteration
	}
	return errors.Join(err, e.endCycle(lasting, p, cycle, wire.Exit{}, err))
}
