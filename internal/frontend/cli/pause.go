package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// pauseOptions are those of pause and of resume.
type pauseOptions struct {
	console *console
	do      func(context.Context, engine.PauseRequest) ([]engine.PauseResult, error)
	list    listing
	done    string // the message for a sandbox that changed
	already string // of one that did not

	request engine.PauseRequest
	chosen  selection
	json    bool
}

func newPause(s *session) *cobra.Command {
	o := &pauseOptions{console: s.console, done: "paused", already: "was paused already"}
	cmd := &cobra.Command{
		Use:   "pause [NAME...] [--all] [--all-repos]",
		Short: "Freeze everything that runs in a sandbox",
		Long: `Freeze everything that runs in a sandbox. It uses no processor until
"litterbox resume"; connections and terminals stay open, and nothing is lost
when a client or the sandbox's keeper ends meanwhile. Commands for a paused
sandbox fail at once; stop, delete, diff, status and list work on it.

With limits.idle-pause in the configuration an idle sandbox is paused
automatically, and the next command resumes it.

NAME may be a pattern, quoted: '*' stands for any characters, and 'worker-*' for
the workers that litterbox spawn made. Of several, only running ones are paused.`,
		Example: `  litterbox pause fix-login
  litterbox pause 'worker-*'
  litterbox pause --all`,
	}
	return o.complete(s, cmd, func(e useCases) func(context.Context, engine.PauseRequest) ([]engine.PauseResult, error) {
		return e.Pause
	})
}

func newResume(s *session) *cobra.Command {
	o := &pauseOptions{console: s.console, done: "resumed", already: "was not paused"}
	cmd := &cobra.Command{
		Use:   "resume [NAME...] [--all] [--all-repos]",
		Short: "Resume a paused sandbox",
		Long: `Resume everything in a paused sandbox where it was. A process that was stopped
before the pause, such as a job stopped by Ctrl-Z, stays stopped. NAME may be a
pattern, as with litterbox pause.`,
		Example: `  litterbox resume fix-login
  litterbox resume --all-repos`,
	}
	return o.complete(s, cmd, func(e useCases) func(context.Context, engine.PauseRequest) ([]engine.PauseResult, error) {
		return e.Resume
	})
}

// complete adds what both commands share.
func (o *pauseOptions) complete(s *session, cmd *cobra.Command, pick func(useCases) func(context.Context, engine.PauseRequest) ([]engine.PauseResult, error)) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		many := o.request.AllEnvs || o.request.AllRepos
		switch {
		case len(args) == 0 && !many:
			return usageError(cmd, "no sandbox name: give one, or use --all or --all-repos")
		case len(args) > 0 && many:
			return usageError(cmd, "a sandbox name and --all exclude each other")
		}
		return nil
	}
	cmd.ValidArgsFunction = s.sandboxNames(true, "")
	cmd.RunE = s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
		o.do, o.list, o.request.Dir, o.chosen.names = pick(e), e.List, dir, args
		return runPause(ctx, o)
	})
	cmd.Flags().BoolVar(&o.request.AllEnvs, "all", false, "every sandbox of this repository")
	cmd.Flags().BoolVar(&o.request.AllEnvs, "all-envs", false, "the same as --all")
	cmd.Flags().BoolVar(&o.request.AllRepos, "all-repos", false, "every sandbox of every repository")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array of what became of each sandbox")
	return cmd
}

func runPause(ctx context.Context, o *pauseOptions) error {
	switch {
	case o.chosen.many():
		infos, err := o.chosen.pick(ctx, o.list, o.request.Dir)
		if err != nil {
			return err
		}
		for _, info := range infos {
			o.request.Names = append(o.request.Names, info.Name)
		}
	case len(o.chosen.names) == 1:
		o.request.Name = o.chosen.names[0]
	}
	results, err := o.do(ctx, o.request)
	if o.json && results != nil {
		if printErr := o.console.document(list(results)); printErr != nil {
			return printErr
		}
		return err
	}
	changed := false
	for _, r := range results {
		var printErr error
		switch {
		case r.Changed:
			changed = true
			printErr = o.console.print("%s %s\n", o.done, clean(r.Name))
		case o.request.Name != "":
			printErr = o.console.print("%s %s\n", clean(r.Name), o.already)
		}
		if printErr != nil {
			return printErr
		}
	}
	if err == nil && !changed && o.request.Name == "" {
		o.console.note("nothing to do: no sandbox is %s", map[bool]sandbox.State{true: sandbox.Running, false: sandbox.Paused}[o.done == "paused"])
	}
	return err
}
