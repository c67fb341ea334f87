package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

func newInit(s *session) *cobra.Command {
	var r engine.InitRequest
	var yes, json bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a .litterbox.toml from what the repository holds",
		Long: `Write the first .litterbox.toml of this repository from its files: lock files,
versions of tools, services of compose files, a dev container. Each part has a
comment. It is shown first, and written after your answer or with --yes; an
existing file stays unless --force is given.

--template writes it for one kind of project instead, and --from converts a
.lima-sandbox.toml. No code of the repository is run.`,
		Example: `  litterbox init
  litterbox init --template python --yes
  litterbox init --from .lima-sandbox.toml`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			r.Dir = dir
			if r.From != "" {
				r.From = hostPath(dir, r.From)
			}
			if !yes {
				r.Confirm = func(file, text string) (bool, error) {
					if !json {
						if err := s.console.print("%s", text); err != nil {
							return false, err
						}
					}
					if !s.console.canAsk() {
						return false, fault.New(fault.Denied, "writing %s needs confirmation", file).WithHint("litterbox init --yes")
					}
					return s.console.ask(ctx, "Write this to "+clean(file)+"?")
				}
			}
			made, err := e.Init(ctx, r)
			if json {
				made.Found = list(made.Found)
				return errors.Join(err, s.console.document(made))
			}
			if err != nil || !made.Written {
				return err
			}
			if err := s.console.print("wrote %s\n", clean(made.File)); err != nil {
				return err
			}
			s.console.note("look it over; network rules take effect after: litterbox trust")
			return nil
		}),
	}
	f := cmd.Flags()
	f.StringVar(&r.Template, "template", "", "write it for a project of `KIND`: node, python, go, rust or full")
	f.StringVar(&r.From, "from", "", "convert `FILE`, a .lima-sandbox.toml")
	f.BoolVar(&r.Force, "force", false, "replace an existing file")
	f.BoolVar(&yes, "yes", false, "write it without asking")
	f.BoolVar(&json, "json", false, "print one JSON object")
	_ = cmd.RegisterFlagCompletionFunc("template", cobra.FixedCompletions([]string{"node", "python", "go", "rust", "full"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}
