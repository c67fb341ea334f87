package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

func newConfig(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config show",
		Short: "Show the configuration in force",
		Long: `Show the configuration of a new sandbox: the result of your own configuration and
the .litterbox.toml of this repository.`,
		Example: `  litterbox config show
  litterbox config show --origin`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError(cmd, "there is no %q: config shows, and keys are set in .litterbox.toml or in your own config.toml", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigShow(s))
	return cmd
}

func newConfigShow(s *session) *cobra.Command {
	var origin, json bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the values in force and their files",
		Long: `Show every key that your own configuration or the .litterbox.toml of this
repository sets, with its value for a new sandbox. The output is TOML. A key that
neither file sets has its default, which docs/reference/configuration.md lists.

--origin shows each file that sets the key and its value there. A value that is not
in force is marked; a note explains why.`,
		Example: `  litterbox config show
  litterbox config show --origin
  litterbox config show --json`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			found, err := e.Configuration(ctx, dir)
			if err != nil {
				return err
			}
			if json {
				found.Notes = list(found.Notes)
				return s.console.document(found)
			}
			for _, note := range found.Notes {
				s.console.note("%s", note)
			}
			if len(found.Settings) == 0 {
				s.console.note("nothing is configured, and every key has its default; litterbox init writes .litterbox.toml")
			}
			if origin {
				return showOrigins(s.console, found.Settings)
			}
			var text strings.Builder
			for _, set := range found.Settings {
				if set.Value != "" {
					fmt.Fprintf(&text, "%s = %s\n", set.Key, set.Value)
				}
			}
			return s.console.print("%s", text.String())
		}),
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "show the file that each value comes from")
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object")
	return cmd
}

func showOrigins(c *console, settings []engine.Setting) error {
	var text strings.Builder
	for _, set := range settings {
		for _, origin := range set.Origins {
			mark := ""
			if !origin.Counts {
				mark = "  # not in effect"
			}
			fmt.Fprintf(&text, "%s\t%s = %s%s\n", clean(origin.File), set.Key, origin.Value, mark)
		}
	}
	return c.print("%s", text.String())
}
