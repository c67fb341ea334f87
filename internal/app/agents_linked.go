//go:build !embedguest

package app

import (
	"context"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/mcp"
	"github.com/litterbox-sandbox/litterbox/internal/payload"
)

// keeperProgram opens the program that keepers run from. This one has everything:
// if it carries no small one, it serves as that too.
func keeperProgram(_ driver.Program, root string) (*os.File, error) { return payload.OpenKeeper(root) }

// serveAgents puts engine and MCP server together. The protocol's library makes
// every start slower, so a release leaves it out of the program that users type
// and carries this one for it.
func serveAgents(version string) func(context.Context, cli.ServeRequest) error {
	return func(ctx context.Context, r cli.ServeRequest) error {
		built, err := build(func(string, int, int) {})
		if err != nil {
			return err
		}
		return mcp.Serve(ctx, mcp.Options{
			Engine: built, Dir: r.Dir, Version: version, HTTP: r.HTTP, TokenFile: r.TokenFile, AnyAddress: r.AnyAddress,
			AnswerWithin: r.AnswerWithin, Structured: r.Structured, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		})
	}
}
