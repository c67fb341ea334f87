package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type updateArguments struct {
	Markers bool `json:"markers,omitempty" jsonschema:"leave conflicts as markers for you to resolve"`
}

func (a updateArguments) check() error           { return nil }
func (a updateArguments) logged() map[string]any { return map[string]any{"markers": a.Markers} }

type updateResult struct {
	Sandbox   string   `json:"sandbox"`
	Onto      string   `json:"onto" jsonschema:"the new base"`
	Commit    string   `json:"commit"`
	Taken     int      `json:"taken" jsonschema:"commits of it"`
	Changed   int      `json:"changed" jsonschema:"files inside"`
	Conflicts []string `json:"conflicts"`
	Stayed    []string `json:"stayed" jsonschema:"files that did not follow"`
}

func (r updateResult) text() string {
	var b strings.Builder
	if r.Taken == 0 && r.Changed == 0 {
		fmt.Fprintf(&b, "%s already has all of %s\n", r.Sandbox, r.Onto)
		return b.String()
	}
	commits := "commits"
	if r.Taken == 1 {
		commits = "commit"
	}
	fmt.Fprintf(&b, "%s has %d more %s of %s; %s inside changed\n", r.Sandbox, r.Taken, commits, r.Onto, files(r.Changed))
	if len(r.Conflicts) > 0 {
		fmt.Fprintf(&b, "resolve the conflict markers in %s: %s\n", files(len(r.Conflicts)), several(r.Conflicts, len(r.Conflicts)))
	}
	if len(r.Stayed) > 0 {
		fmt.Fprintf(&b, "not updated, changed meanwhile: %s\n", several(r.Stayed, len(r.Stayed)))
	}
	return b.String()
}

// runUpdate brings the sandbox to the present state of the branch that it began on.
// No other revision can be asked for: its history would come along, and the human
// decides which parts of the repository an agent sees.
func runUpdate(ctx context.Context, c *call, in updateArguments) (updateResult, error) {
	done, err := c.Engine.Update(ctx, engine.UpdateRequest{Dir: c.Dir, Name: c.hold.Name, Markers: in.Markers})
	if err != nil {
		return updateResult{}, err
	}
	c.outcome.Commit = done.Commit
	return updateResult{
		Sandbox: c.hold.Name, Onto: printable(done.OntoRef), Commit: done.Commit, Taken: done.Taken, Changed: done.Changed,
		Conflicts: notesOf(done.Conflicts), Stayed: notesOf(done.Stayed),
	}, nil
}
