package mcp

import (
	"bytes"
	"context"
	"errors"
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
	Path  string `json:"path,omitempty" jsonschema:"only this file or directory"`
	Since string `json:"since,omitempty" jsonschema:"milestone (the last one) or a step's number; default the base"`
	With  string `json:"with,omitempty" jsonschema:"another sandbox to compare with instead"`
	Limit int    `json:"limit,omitempty" jsonschema:"most bytes; default 8000, at most 200000"`
}

func (a diffArguments) check() error {
	if a.Limit < 0 || a.Limit > diffMost {
		return fmt.Errorf("limit is %d and must be between 1 and %d", a.Limit, diffMost)
	}
	return errors.Join(shortEnough("path", a.Path, pathMost), shortEnough("since", a.Since, nameMost), shortEnough("with", a.With, nameMost))
}

func (a diffArguments) logged() map[string]any {
	return map[string]any{"path": a.Path, "since": a.Since, "with": a.With}
}

type changedFile struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty" jsonschema:"its name before"`
	Added   int    `json:"added" jsonschema:"lines"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

func (f changedFile) line() string {
	name := f.Path
	if f.From != "" {
		name = f.From + " => " + f.Path
	}
	if f.Binary {
		return name + ": binary"
	}
	return fmt.Sprintf("%s: +%d -%d", name, f.Added, f.Deleted)
}

type diffResult struct {
	Files []changedFile `json:"files"`
	Total int           `json:"total" jsonschema:"changed files"`
	Patch string        `json:"patch"`
	Cut   bool          `json:"cut" jsonschema:"the patch is longer"`
	Note  string        `json:"note,omitempty"`
}

func (r diffResult) text() string {
	switch {
	case r.Note != "":
		return "nothing changed; " + r.Note
	case r.Total == 0:
		return "nothing changed"
	}
	var b strings.Builder
	for _, f := range r.Files {
		b.WriteString(f.line() + "\n")
	}
	if r.Total > len(r.Files) {
		fmt.Fprintf(&b, "[%s more]\n", files(r.Total-len(r.Files)))
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
		// Literal: a path is neither a pattern nor an option.
		scope = []string{":(top,literal)" + strings.TrimPrefix(strings.TrimPrefix(in.Path, c.hold.Path+"/"), "./")}
	}
	compare := engine.DiffRequest{Dir: c.Dir, Name: c.hold.Name, Since: in.Since, With: in.With}
	compare.Args = append([]string{"--numstat", "-z", "--find-renames", "--no-color", "--"}, scope...)
	numbers, err := c.git(ctx, 4<<20, compare)
	if err != nil {
		return diffResult{}, err
	}
	out := diffResult{Files: []changedFile{}}
	for f := range changedFiles(string(numbers.kept)) {
		if out.Total++; out.Total <= diffFiles {
			out.Files = append(out.Files, f)
		}
	}
	if out.Total == 0 {
		out.Note, err = c.exists(ctx, in.Path)
		return out, err
	}
	compare.Args = append([]string{"--find-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--"}, scope...)
	patch, err := c.git(ctx, orDefault(in.Limit, diffDefault), compare)
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

// changedFiles reads what git diff --numstat -z prints. A rename has an empty
// path and then both names.
func changedFiles(numstat string) func(yield func(changedFile) bool) {
	return func(yield func(changedFile) bool) {
		records := strings.Split(numstat, "\x00")
		for len(records) > 0 {
			fields := strings.SplitN(records[0], "\t", 3)
			records = records[1:]
			if len(fields) != 3 {
				continue
			}
			added, _ := strconv.Atoi(fields[0]) // "-" for a binary file
			deleted, _ := strconv.Atoi(fields[1])
			f := changedFile{Path: printable(fields[2]), Added: added, Deleted: deleted, Binary: fields[0] == "-"}
			if fields[2] == "" && len(records) >= 2 {
				f.From, f.Path = printable(records[0]), printable(records[1])
				records = records[2:]
			}
			if !yield(f) {
				return
			}
		}
	}
}

// exists checks that a path without changes exists at all. note says where that
// could not be seen.
func (c *call) exists(ctx context.Context, path string) (note string, err error) {
	if path == "" {
		return "", nil
	}
	_, _, err = c.page(ctx, readArguments{Path: path}, 1)
	switch fault.KindOf(err) {
	case fault.Denied:
		return "the path is hidden, so litterbox did not check whether it exists", nil
	case fault.NotFound:
		return "", fault.New(fault.NotFound, "cannot compare %q: neither the sandbox nor what it is compared with has it", path).
			WithHint("sandbox-files lists what there is; sandbox-diff without path shows all changes")
	}
	return "", nil
}

// git runs the engine's diff and keeps the first bytes of what it prints.
func (c *call) git(ctx context.Context, limit int, request engine.DiffRequest) (*bounded, error) {
	out, complaint := &bounded{limit: limit}, &bounded{limit: 4 << 10}
	request.Stdin, request.Stdout, request.Stderr = bytes.NewReader(nil), out, complaint
	code, err := c.Engine.Diff(ctx, request)
	if err == nil && code > 1 {
		err = fault.New(fault.Invalid, "cannot compare: git said %q", strings.TrimSpace(string(complaint.kept)))
	}
	return out, err
}
