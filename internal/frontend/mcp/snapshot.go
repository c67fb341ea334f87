package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type snapshotArguments struct {
	Label string `json:"label,omitempty" jsonschema:"to find it again"`
}

func (a snapshotArguments) check() error           { return shortEnough("label", a.Label, nameMost) }
func (a snapshotArguments) logged() map[string]any { return map[string]any{"label": a.Label} }

type snapshotResult struct {
	Sandbox  string `json:"sandbox"`
	Snapshot string `json:"snapshot"`
	Step     int    `json:"step" jsonschema:"the last one before it"`
}

func (r snapshotResult) text() string {
	return fmt.Sprintf("snapshot %s of %s, after step %d\n", r.Snapshot, r.Sandbox, r.Step)
}

func runSnapshot(ctx context.Context, c *call, in snapshotArguments) (snapshotResult, error) {
	taken, err := c.Engine.TakeSnapshot(ctx, c.Dir, c.hold.Name, in.Label)
	if err != nil {
		return snapshotResult{}, err
	}
	return snapshotResult{Sandbox: c.hold.Name, Snapshot: taken.Name, Step: taken.Iteration}, nil
}

type rewindArguments struct {
	To string `json:"to" jsonschema:"a step's number or a snapshot"`
}

func (a rewindArguments) check() error {
	return errors.Join(filled("to", a.To, "sandbox-log has the numbers of steps"), shortEnough("to", a.To, nameMost))
}
func (a rewindArguments) logged() map[string]any { return map[string]any{"to": a.To} }

type rewindResult struct {
	Sandbox string   `json:"sandbox"`
	To      string   `json:"to"`
	Before  string   `json:"before" jsonschema:"the snapshot of what was there"`
	Exact   bool     `json:"exact" jsonschema:"ignored files are back too"`
	Ended   []string `json:"ended" jsonschema:"processes that ran inside"`
	Notes   []string `json:"notes"`
}

func (r rewindResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is as it was at %s\n", r.Sandbox, r.To)
	if !r.Exact {
		b.WriteString("ignored files, ~ and git inside are as they were before: only a snapshot brings them back\n")
	}
	for _, one := range r.Ended {
		fmt.Fprintf(&b, "ended: %s\n", one)
	}
	writeNotes(&b, r.Notes)
	if r.Before != "" {
		fmt.Fprintf(&b, "to undo: sandbox-rewind to %s\n", r.Before)
	}
	return b.String()
}

// runRewind returns to a step by its commit, or by a snapshot of exactly that step,
// and to a snapshot. The latter two stop the sandbox, and with it processes that
// this session's commands left running; it refuses while others work there.
func runRewind(ctx context.Context, c *call, in rewindArguments) (rewindResult, error) {
	var reverted engine.Reverted
	var err error
	if number, notNumber := strconv.Atoi(in.To); notNumber == nil {
		reverted, err = c.Engine.Rewind(ctx, engine.RewindRequest{Dir: c.Dir, Name: c.hold.Name, Iteration: number, ConfirmStop: ownWork})
	} else {
		reverted, err = c.Engine.RestoreSnapshot(ctx, engine.RestoreRequest{Dir: c.Dir, Name: c.hold.Name, Snapshot: in.To, ConfirmStop: ownWork})
	}
	if err != nil {
		return rewindResult{}, err
	}
	out := rewindResult{Sandbox: c.hold.Name, To: reverted.To, Before: reverted.Before, Exact: reverted.Exact, Ended: []string{}, Notes: []string{}}
	for _, one := range reverted.Ended {
		if one.Kind != engine.WorkAgent {
			out.Ended = append(out.Ended, printable(one.String()))
		}
	}
	return out, nil
}

// ownWork agrees to end the asking session's own work: its hold, which no other can
// have at the same time, and processes left running.
func ownWork(work []engine.Work) (bool, error) {
	for _, one := range work {
		if one.Kind != engine.WorkAgent && one.Kind != engine.WorkProcess {
			return false, fault.New(fault.Conflict, "cannot rewind: %s is at work in the sandbox", one.String()).
				WithHint("sandbox-wait for it, with stop to end it; only the human ends what a human runs there")
		}
	}
	return true, nil
}
