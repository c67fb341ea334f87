package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type searchArguments struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path,omitempty" jsonschema:"a directory or a file; default the project"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files such as *.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Context    int    `json:"context,omitempty" jsonschema:"lines around each match, at most 20"`
	Limit      int    `json:"limit,omitempty" jsonschema:"most lines; default 50, at most 2000"`
}

func (a searchArguments) check() error {
	switch {
	case a.Pattern == "":
		return fmt.Errorf("pattern is empty: name what to look for")
	case a.Context < 0 || a.Context > 20:
		return fmt.Errorf("context is %d and must be between 0 and 20", a.Context)
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
	Near bool   `json:"near,omitempty" jsonschema:"only lies near a match"`
}

type searchResult struct {
	Matches []match `json:"matches"`
	Files   int     `json:"files" jsonschema:"that were searched"`
	More    string  `json:"more,omitempty" jsonschema:"why the list is not complete"`
	context bool    // lines around matches were asked for
}

func (r searchResult) text() string {
	var b strings.Builder
	last := match{}
	for _, m := range r.Matches {
		sign := ":"
		if m.Near {
			sign = "-"
		}
		if r.context && last.Line > 0 && (last.Path != m.Path || last.Line+1 != m.Line) {
			b.WriteString("--\n")
		}
		fmt.Fprintf(&b, "%s%s%d%s %s\n", m.Path, sign, m.Line, sign, m.Text)
		last = m
	}
	if len(r.Matches) == 0 {
		fmt.Fprintf(&b, "nothing found in %s\n", files(r.Files))
	}
	if r.More != "" {
		fmt.Fprintf(&b, "[%s]\n", r.More)
	}
	return b.String()
}

func runSearch(ctx context.Context, c *call, in searchArguments) (searchResult, error) {
	matches, found, err := c.Engine.Search(ctx, c.place(), engine.FindRequest{
		Path: []byte(in.Path), Glob: []byte(in.Glob), Pattern: []byte(in.Pattern), Fold: in.IgnoreCase, Context: in.Context, Limit: orDefault(in.Limit, 50),
	})
	if err != nil {
		return searchResult{}, err
	}
	out := searchResult{Matches: []match{}, Files: found.Files, More: incomplete(found), context: in.Context > 0}
	for _, m := range matches {
		out.Matches = append(out.Matches, match{Path: c.relative(found.Path, m.Path), Line: m.Line, Text: printable(m.Text), Near: m.Near})
	}
	return out, nil
}
