package mcp

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const (
	diffDefault = 8_000
	diffMost    = 200_000
	diffFiles   = 200
)

type diffArguments struct {
	Path  string `json:"path,omitempty" jsonschema:"only this file or directory, relative to the project"`
	Limit int    `json:"limit,omitempty" jsonschema:"most bytes of the patch; 8000 when left out, at most 200000"`
}

func (a diffArguments) check() error {
	if a.Limit < 0 || a.Limit > diffMost {
		return fmt.Errorf("limit is %d and must be between 1 and %d", a.Limit, diffMost)
	}
	return shortEnough("path", a.Path, pathMost)
}
func (a diffArguments) logged() map[string]any { return map[string]any{"path": a.Path} }

type changedFile struct {
	Path    string `json:"path"`
	Added   int    `json:"added" jsonschema:"lines"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

type diffResult struct {
	Files []changedFile `json:"files"`
	Total int           `json:"total" jsonschema:"changed files"`
	Patch string        `json:"patch"`
	Cut   bool          `json:"cut" jsonschema:"the patch is longer"`
}

func (r diffResult) text() string {
	if r.Total == 0 {
		return "nothing changed"
	}
	var b strings.Builder
	for _, f := range r.Files {
		if f.Binary {
			fmt.Fprintf(&b, "%s: binary\n", f.Path)
			continue
		}
		fmt.Fprintf(&b, "%s: +%d -%d\n", f.Path, f.Added, f.Deleted)
	}
	if r.Total > len(r.Files) {
		fmt.Fprintf(&b, "[%d files more]\n", r.Total-len(r.Files))
	}
	b.WriteString("\n" + r.Patch)
	if r.Cut {
		b.WriteString("\n[the patch is longer: ask for one path, or raise limit]\n")
	}
	return b.String()
}

func runDiff(ctx context.Context, c *call, in diffArguments) (diffResult, error) {
	var scope []string
	if in.Path != "" {
		// Literal: a path is no pattern, and no option.
		scope = []string{":(top,literal)" + strings.TrimPrefix(strings.TrimPrefix(in.Path, c.hold.Path+"/"), "./")}
	}
	numbers, err := c.git(ctx, 4<<20, append([]string{"--numstat", "-z", "--no-renames", "--no-color", "--"}, scope...))
	if err != nil {
		return diffResult{}, err
	}
	out := diffResult{Files: []changedFile{}}
	for record := range strings.SplitSeq(strings.TrimSuffix(string(numbers.kept), "\x00"), "\x00") {
		fields := strings.SplitN(record, "\t", 3)
		if len(fields) != 3 {
			continue
		}
		if out.Total++; out.Total > diffFiles {
			continue
		}
		added, _ := strconv.Atoi(fields[0]) // "-" for a binary file
		deleted, _ := strconv.Atoi(fields[1])
		out.Files = append(out.Files, changedFile{Path: printable(fields[2]), Added: added, Deleted: deleted, Binary: fields[0] == "-"})
	}
	if out.Total == 0 {
		return out, nil
	}
	patch, err := c.git(ctx, orDefault(in.Limit, diffDefault), append([]string{"--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--"}, scope...))
	if err != nil {
		return diffResult{}, err
	}
	out.Cut = patch.dropped > 0
	out.Patch = visible(wholeLines(patch.kept))
	if !out.Cut {
		out.Patch = visible(patch.kept)
	}
	return out, nil
}

// git runs the engine's diff and keeps the first bytes of what it prints.
func (c *call) git(ctx context.Context, limit int, args []string) (*bounded, error) {
	out, complaint := &bounded{limit: limit}, &bounded{limit: 4 << 10}
	code, err := c.Engine.Diff(ctx, engine.DiffRequest{
		Dir: c.Dir, Name: c.hold.Name, Args: args, Stdin: bytes.NewReader(nil), Stdout: out, Stderr: complaint,
	})
	if err == nil && code > 1 {
		err = fault.New(fault.Invalid, "cannot compare: git said %q", strings.TrimSpace(string(complaint.kept)))
	}
	return out, err
}
