package mcp

import (
	"context"
	"fmt"
)

type milestoneArguments struct {
	Message string `json:"message" jsonschema:"what the task achieved: first line short, more below it where needed"`
}

func (a milestoneArguments) check() error {
	return message(a.Message)
}
func (a milestoneArguments) logged() map[string]any {
	return map[string]any{"message": a.Message}
}

type milestoneResult struct {
	Commit  string `json:"commit"`
	Message string `json:"message"`
	Step    int    `json:"step"`
}

func (r milestoneResult) text() string {
	return fmt.Sprintf("milestone %s: %s\nthe human merges it with: litterbox merge", short(r.Commit), r.Message)
}

func runMilestone(ctx context.Context, c *call, in milestoneArguments) (milestoneResult, error) {
	made, err := c.Engine.Milestone(ctx, c.Dir, c.hold.Name, in.Message)
	if err != nil {
		return milestoneResult{}, err
	}
	c.outcome.Commit = made.Commit
	return milestoneResult{Commit: made.Commit, Message: oneLine(made.Message, 200), Step: made.Number}, nil
}
