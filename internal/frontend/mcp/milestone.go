package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type milestoneArguments struct {
	Message string `json:"message" jsonschema:"what the task achieved: a short first line, then more"`
}

func (a milestoneArguments) check() error {
	return message(a.Message)
}
func (a milestoneArguments) logged() map[string]any {
	return map[string]any{"message": a.Message}
}

type milestoneResult struct {
	Sandbox string   `json:"sandbox"`
	Commit  string   `json:"commit"`
	Message string   `json:"message"`
	Step    int      `json:"step"`
	Files   []string `json:"files" jsonschema:"that it changes, the first of them"`
	Changed int      `json:"changed" jsonschema:"files"`
	Notes   []string `json:"notes"`
}

func (r milestoneResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "milestone of %s, step %d: %s\n", r.Sandbox, r.Step, r.Message)
	if r.Changed > 0 {
		fmt.Fprintf(&b, "%s: %s\n", files(r.Changed), several(r.Files, r.Changed))
	}
	writeNotes(&b, r.Notes)
	fmt.Fprintf(&b, "the human merges it with: litterbox merge %s\n", r.Sandbox)
	return b.String()
}

func runMilestone(ctx context.Context, c *call, in milestoneArguments) (milestoneResult, error) {
	numbers, err := c.git(ctx, 4<<20, engine.DiffRequest{
		Dir: c.Dir, Name: c.hold.Name, Since: "milestone", Args: []string{"--numstat", "-z", "--find-renames", "--no-color", "--"},
	})
	if err != nil {
		return milestoneResult{}, err
	}
	made, err := c.Engine.Milestone(ctx, c.Dir, c.hold.Name, in.Message)
	if err != nil {
		return milestoneResult{}, err
	}
	c.outcome.Commit = made.Commit
	out := milestoneResult{
		Sandbox: c.hold.Name, Commit: made.Commit, Message: oneLine(made.Message, 200), Step: made.Number, Files: []string{}, Notes: []string{},
	}
	var suspects []string
	for f := range changedFiles(string(numbers.kept)) {
		if out.Changed++; len(out.Files) < 20 {
			out.Files = append(out.Files, f.Path)
		}
		if generated(f.Path) || f.Binary && !picture(f.Path) {
			suspects = append(suspects, f.Path)
		}
	}
	out.Notes = append(out.Notes, c.aboutGenerated(suspects)...)
	out.Notes = append(out.Notes, aboutLarge(made.Large)...)
	return out, nil
}
