package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type filesArguments struct {
	Path  string `json:"path,omitempty" jsonschema:"a directory; default the project"`
	Glob  string `json:"glob,omitempty" jsonschema:"such as *.go or src/**/*.{ts,tsx}; default everything"`
	Limit int    `json:"limit,omitempty" jsonschema:"most files; default 200, at most 2000"`
}

// listMost bounds how many files one call lists.
const listMost = 2000

func checkLimit(limit int) error {
	if limit < 0 || limit > listMost {
		return fmt.Errorf("limit is %d and must be between 1 and %d", limit, listMost)
	}
	return nil
}

func (a filesArguments) check() error {
	return errors.Join(checkLimit(a.Limit), shortEnough("path", a.Path, pathMost), shortEnough("glob", a.Glob, pathMost))
}

func (a filesArguments) logged() map[string]any {
	return map[string]any{"path": a.Path, "glob": a.Glob, "limit": a.Limit}
}

type filesResult struct {
	Files []string `json:"files" jsonschema:"relative to the project; directories end in a slash, links in @"`
	More  string   `json:"more,omitempty" jsonschema:"why the list is not complete"`
}

func (r filesResult) text() string {
	var b strings.Builder
	for _, file := range r.Files {
		b.WriteString(file + "\n")
	}
	if len(r.Files) == 0 {
		b.WriteString("nothing found\n")
	}
	if r.More != "" {
		fmt.Fprintf(&b, "[%s]\n", r.More)
	}
	return b.String()
}

func runFiles(ctx context.Context, c *call, in filesArguments) (filesResult, error) {
	entries, found, err := c.Engine.Find(ctx, c.place(), engine.FindRequest{
		Path: []byte(in.Path), Glob: []byte(in.Glob), Limit: orDefault(in.Limit, 200),
	})
	if err != nil {
		return filesResult{}, c.aFile(ctx, in.Path, err)
	}
	out := filesResult{Files: []string{}, More: incomplete(found)}
	for _, entry := range entries {
		name := c.relative(found.Path, entry.Path)
		switch entry.Type {
		case "dir":
			name += "/"
		case "link":
			name += "@"
		}
		out.Files = append(out.Files, name)
	}
	return out, nil
}

// aFile words the error of listing a file.
func (c *call) aFile(ctx context.Context, path string, err error) error {
	if fault.KindOf(err) != fault.Invalid || path == "" {
		return err
	}
	if _, _, readErr := c.page(ctx, readArguments{Path: path}, 1); readErr != nil {
		return err
	}
	return fault.New(fault.Invalid, "cannot list %q: it is a file, not a directory", path).WithHint("sandbox-read with this path shows it")
}

// relative words the path of something found below start so that the next call
// can use it as it is: in the project, or absolute outside it.
func (c *call) relative(start, below []byte) string {
	path := string(start) + "/" + string(below)
	return printable(strings.TrimPrefix(path, c.hold.Path+"/"))
}

// incomplete says why a walk did not see everything.
func incomplete(found engine.FilesFound) string {
	var why []string
	switch found.Stopped {
	case "":
	case "limit":
		why = append(why, "there is more: narrow path and glob, or raise limit")
	case "time":
		why = append(why, "stopped after 10 seconds: narrow path and glob")
	default:
		why = append(why, "parts of the tree are too deep or too large to look at")
	}
	if found.Skipped > 0 {
		why = append(why, fmt.Sprintf("%d files or directories were skipped: too large, unreadable, or with lines over 8 MB", found.Skipped))
	}
	return strings.Join(why, "; ")
}

func orDefault(value, instead int) int {
	if value == 0 {
		return instead
	}
	return value
}
