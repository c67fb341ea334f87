package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// DiffTool shows what [Engine.Diff] compares in the user's own difftool. The tool
// gets read-only copies, which are gone when it ends; nothing else is touched.
// It returns git's exit code.
func (e *Engine) DiffTool(ctx context.Context, request DiffRequest) (code int, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return 0, err
	}
	defer e.tell(p)
	to, err := e.diffTo(ctx, p, request.To)
	if err != nil {
		return 0, err
	}
	from, err := e.diffFrom(ctx, p, request)
	if err != nil {
		return 0, err
	}
	_, risks, err := landing.ChangedAgainst(ctx, p.repo, p.record.From(), to)
	if err != nil {
		return 0, err
	}
	e.warn(risks) // before a program opens them
	dir, done, err := p.scratch(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	code, left, err := landing.DiffTool(ctx, p.repo, filepath.Join(dir, "stage"), request.Dir, from, to, request.Args,
		landing.Streams{Stdin: request.Stdin, Stdout: request.Stdout, Stderr: request.Stderr})
	for _, path := range left {
		p.note(fmt.Sprintf("submodule %q is not shown: litterbox diff %s shows its commits", path, p.record.Name))
	}
	return code, err
}
