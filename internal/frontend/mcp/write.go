package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type writeArguments struct {
	Path    string `json:"path" jsonschema:"in the project, or absolute"`
	Content string `json:"content" jsonschema:"of the whole file"`
	Message string `json:"message" jsonschema:"what and why, in one line: the commit's message"`
}

func (a writeArguments) check() error {
	return errors.Join(path(a.Path, "name the file to write"), message(a.Message))
}

func (a writeArguments) logged() map[string]any {
	return map[string]any{"path": a.Path, "content": engine.Digest(a.Content), "message": a.Message}
}

type writeResult struct {
	Path    string   `json:"path"`
	Bytes   int      `json:"bytes"`
	Step    int      `json:"step"`
	Commit  string   `json:"commit" jsonschema:"on the branch outside; git inside does not have it"`
	Changed []string `json:"changed" jsonschema:"files that the commit changed"`
	Notes   []string `json:"notes"`
}

func (r writeResult) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wrote %d bytes to %s", r.Bytes, r.Path)
	if len(r.Changed) == 0 {
		b.WriteString("; nothing that git tracks changed\n")
	} else {
		fmt.Fprintf(&b, ", step %d\n", r.Step)
	}
	writeNotes(&b, r.Notes)
	return b.String()
}

func runWrite(ctx context.Context, c *call, in writeArguments) (writeResult, error) {
	made, notes, err := c.Engine.Write(ctx, engine.WriteRequest{
		Dir: c.Dir, Name: c.hold.Name, Path: in.Path, Message: in.Message, Content: strings.NewReader(in.Content), Guarded: true,
	})
	if err != nil {
		return writeResult{}, err
	}
	c.outcome.Commit = made.Commit
	return writeResult{
		Path: printable(in.Path), Bytes: len(in.Content), Step: made.Number, Commit: made.Commit, Changed: notesOf(made.Paths), Notes: c.news(notes, ""),
	}, nil
}
