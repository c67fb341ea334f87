package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Checkpoints say when a command's work is committed while it runs.
type Checkpoints struct {
	After time.Duration // the first, at the earliest
	Quiet time.Duration // how long nothing may have changed
	Least time.Duration // between two
	// Doing gives the first line of the next; empty makes one of the files.
	Doing func() string
}

// CheckpointQuiet is how long files are quiet before a checkpoint.
const CheckpointQuiet = 2 * time.Second

// The pace of checkpoints: an agent's from the start, any other command's when
// it has run for a while, so that builds and tests stay one commit.
const (
	checkpointLeast  = 5 * time.Second
	checkpointOthers = 30 * time.Second
	checkpointLook   = 500 * time.Millisecond
	// checkpointShare bounds the cost of looking: the pause before the next look is
	// this many times as long as the last look.
	checkpointShare = 30
)

// unwatched are directories whose changes alone make no checkpoint: the results
// of builds and installs there are ignored nearly everywhere. A commit judges by
// the repository's own rules all the same.
var unwatched = []string{".git", "node_modules", "target", "__pycache__", ".venv", "venv", ".tox", ".gradle", ".next", ".cache"}

// checkpoints commits what a command has done so far, whenever its files have been
// quiet for a moment after a change. The returned function ends that, and waits for
// a commit that is under way.
func (e *Engine) checkpoints(ctx context.Context, p *place, cycle *sandbox.Cycle, request ExecRequest) func() {
	pace := request.Checkpoints
	if pace.Quiet == 0 {
		pace = Checkpoints{After: checkpointOthers, Quiet: CheckpointQuiet, Least: checkpointLeast}
	}
	if pace.Quiet < 0 || request.NoCommit {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	record, running := *p.record, *cycle
	began := time.Now() // here: the command may be faster than the goroutine
	go func() {
		defer close(done)
		e.checkpointing(ctx, e.memoryOf(ctx, p, &record), &running, request.Agent, pace, began)
	}()
	return func() {
		cancel()
		<-done
	}
}

// memoryOf is a place of its own for the same sandbox: one place serves one
// goroutine.
func (e *Engine) memoryOf(ctx context.Context, p *place, record *sandbox.Sandbox) *place {
	q := e.place(record, e.memory().At(ctx, record.GitDir, record.Repository, record.Base), p.driver)
	q.config, q.from = p.config, p.from
	return q
}

func (e *Engine) checkpointing(ctx context.Context, p *place, cycle *sandbox.Cycle, agent *Working, pace Checkpoints, began time.Time) {
	if p.far() {
		return // each look would be a listing: the command's own commit takes everything
	}
	files := p.files()
	look := func(after time.Time) (hostile.Changes, time.Duration) {
		from := time.Now()
		return files.Look(after, func(name string) bool { return slices.Contains(unwatched, name) }), time.Since(from)
	}
	named := began.Add(-ticks) // changes since then are news
	first, _ := look(named)
	committed := seenBefore(first, began)
	last, since, at, least := first, began, began, pace.Least
	timer := time.NewTimer(checkpointLook)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		seen, took := look(named)
		timer.Reset(max(checkpointLook, took*checkpointShare))
		if !seen.Same(last) {
			last, since = seen, now
			continue
		}
		if seen.Same(committed) || now.Sub(since) < pace.Quiet || now.Sub(at) < least || now.Sub(began) < pace.After {
			continue
		}
		doing := ""
		if pace.Doing != nil {
			doing = pace.Doing()
		}
		if doing == "" {
			doing = fromFiles(seen.Newest)
		}
		iteration := &sandbox.Iteration{Cycle: cycle.ID, Kind: "checkpoint", Message: doing, StartedAt: cycle.StartedAt, Duration: now.Sub(cycle.StartedAt)}
		agent.describe(iteration)
		// It is not cut off: half a commit would be made again.
		done, _, err := e.commit(context.WithoutCancel(ctx), p, iteration, commitOptions{onlyIfChanged: true})
		if err != nil {
			// The command's own commit will say why, unless the problem has passed.
			at, least = time.Now(), 2*least
			continue
		}
		least = pace.Least
		if done {
			e.snapshotAfter(context.WithoutCancel(ctx), p, sandbox.SnapshotIteration)
		}
		// Changes during the commit count for the next.
		committed, named, at = seen, now.Add(-ticks), time.Now()
	}
}

// ticks is by how much a change's time may precede the moment when it was made: the
// kernel's clock for files advances once a tick, of which there are at least a
// hundred in a second (inode_set_ctime_current, CONFIG_HZ).
const ticks = 20 * time.Millisecond

// seenBefore is the state when a command began, by the first look after that. A
// command that was faster than the look has changed something already; then nothing
// counts as committed, and the next checkpoint finds out.
func seenBefore(first hostile.Changes, began time.Time) hostile.Changes {
	if first.Latest.After(began.Add(-ticks)) {
		return hostile.Changes{}
	}
	return first
}

// fromFiles is the subject of a checkpoint whose command says nothing.
func fromFiles(names []string) string {
	const most = 3
	if len(names) == 0 {
		return "Remove files"
	}
	text := "Change " + strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += " and others"
	}
	return text
}
