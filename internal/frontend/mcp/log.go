package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type logArguments struct {
	Limit int `json:"limit,omitempty" jsonschema:"how many; default 20"`
}

func (a logArguments) check() error {
	if a.Limit < 0 || a.Limit > 1000 {
		return fmt.Errorf("limit is %d and must be between 1 and 1000", a.Limit)
	}
	return nil
}
func (a logArguments) logged() map[string]any { return nil }

// step is an iteration as a model reads it.
type step struct {
	Number   int    `json:"number"`
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Commit   string `json:"commit"`
	ExitCode int    `json:"exit_code"`
	Changed  int    `json:"changed" jsonschema:"files"`
	At       string `json:"at"`
}

func (s step) line() string {
	var about []string
	if s.ExitCode != 0 {
		about = append(about, fmt.Sprintf("exit %d", s.ExitCode))
	}
	if s.Changed > 0 {
		about = append(about, files(s.Changed))
	}
	text := fmt.Sprintf("%d %s: %s", s.Number, s.Kind, s.Message)
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text + "\n"
}

// files counts files in words.
func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

type logResult struct {
	Steps []step `json:"steps" jsonschema:"newest first"`
	Total int    `json:"total"`
}

func (r logResult) text() string {
	if len(r.Steps) == 0 {
		return "no steps yet"
	}
	var b strings.Builder
	for _, s := range r.Steps {
		b.WriteString(s.line())
	}
	if r.Total > len(r.Steps) {
		fmt.Fprintf(&b, "%d older steps\n", r.Total-len(r.Steps))
	}
	return b.String()
}

func runLog(ctx context.Context, c *call, in logArguments) (logResult, error) {
	all, err := c.Engine.Log(ctx, c.Dir, c.hold.Name)
	if err != nil {
		return logResult{}, err
	}
	if in.Limit == 0 {
		in.Limit = 20
	}
	return logResult{Steps: stepsOf(all, in.Limit), Total: len(all)}, nil
}

func lastSteps(ctx context.Context, c *call, name string, most int) ([]step, error) {
	all, err := c.Engine.Log(ctx, c.Dir, name)
	return stepsOf(all, most), err
}

func stepsOf(all []sandbox.Iteration, most int) []step {
	steps := []step{}
	for _, it := range slices.Backward(all) {
		if len(steps) == most {
			break
		}
		steps = append(steps, step{
			Number: it.Number, Kind: it.Kind, Message: oneLine(it.Message, 200), Commit: it.Commit,
			ExitCode: it.ExitCode, Changed: it.Changed, At: it.StartedAt.UTC().Format(time.RFC3339),
		})
	}
	return steps
}
