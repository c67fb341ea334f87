package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type searchArguments struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression (RE2), matched line by line"`
	Path       string `json:"path,omitempty" jsonschema:"a directory or a file; the project when left out"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files such as *.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Limit      int    `json:"limit,omitempty" jsonschema:"most lines; 50 when left out, at most 2000"`
}

func (a searchArguments) check() error {
	if a.Pattern == "" {
		return fmt.Errorf("pattern is empty: name what to look for")
	}
	return errors.Join(checkLimit(a.Limit), shortEnough("pattern", a.Pattern, pathMost), shortEnough("path", a.Path, pathMost), shortEnough("glob", a.Glob, pathMost))
}

func (a searchArguments) logged() map[string]any {
	return map[string]any{"pattern": a.Pattern, "path": a.Path, "glob": a.Glob, "ignore_case": a.IgnoreCase, "limit": a.Limit}
}

type match struct {
	Path string `json:"path" jsonschema:"relative to the project"`
	Line int64  `json:"line"`
	Text string `json:"text"`
}

type searchResult struct {
	Matches []match `json:"matches"`
	Files   int     `json:"files" jsonschema:"that were searched"`
	More    string  `json:"more,omitempty" jsonschema:"why the list is not complete"`
}

func (r searchResult) text() string {
	var b strings.Builder
	for _, m := range r.Matches {
		fmt.Fprintf(&b, "%s:%d: %s\n", m.Path, m.Line, m.Text)
	}
	if len(r.Matches) == 0 {
		fmt.Fprintf(&b, "nothing found in %d files\n", r.Files)
	}
	if r.More != "" {
		fmt.Fprintf(&b, "[%s]\n", r.More)
	}
	return b.String()
}

func runSearch(ctx context.Context, c *call, in searchArguments) (searchResult, error) {
	matches, found, err := c.Engine.Search(ctx, c.place(), engine.FindRequest{
		Path: []byte(in.Path), Glob: []byte(in.Glob), Pattern: []byte(in.Pattern), Fold: in.IgnoreCase, Limit: orDefault(in.Limit, 50),
	})
	if err != nil {
		return searchResult{}, err
	}
	out := searchResult{Matches: []match{}, Files: found.Files, More: incomplete(found)}
	for _, m := range matches {
		out.Matches = append(out.Matches, match{Path: c.relative(found.Path, m.Path), Line: m.Line, Text: printable(m.Text)})
	}
	return out, nil
}
