//go:build !embedguest

package app

import (
	"context"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/mcp"
)

// serveAgents puts engine and MCP server together. The protocol's library makes
// every start slower, so a release leaves it out of the program that is typed and
// carries this one for it.
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
