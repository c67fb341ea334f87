package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type trustOptions struct {
	console *console
	trust   func(ctx context.Context, dir string) (engine.TrustResult, error)

	dir  string
	json bool
}

func newTrust(s *session) *cobra.Command {
	o := &trustOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Allow what this repository's .litterbox.toml asks for",
		Long: `Allow what the .litterbox.toml of this checkout asks for: driver and image,
directories and files of this machine, network, packages and tools, secrets, the SSH
agent, hooks, weaker isolation, and how long things are kept. config show marks what
waits for it. Trust applies to exactly the present content; a changed file must be
trusted again.`,
		Example:           "  litterbox trust",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.trust, o.dir = e.Trust, dir
			return runTrust(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print what was allowed as one JSON object")
	return cmd
}

func runTrust(ctx context.Context, o *trustOptions) error {
	result, err := o.trust(ctx, o.dir)
	if err != nil {
		return err
	}
	if o.json {
		result.Grants = list(result.Grants)
		return o.console.document(result)
	}
	if err := o.console.print("trusted %s\n", clean(result.Path)); err != nil {
		return err
	}
	for _, grant := range result.Grants {
		if err := o.console.print("  allows %s\n", clean(grant)); err != nil {
			return err
		}
	}
	if len(result.Grants) == 0 {
		return o.console.print("  nothing in it needs trust\n")
	}
	o.console.notes(result.Notes)
	return nil
}
