package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// sandboxNames completes the first argument, or with many each argument, with the
// names of the repository's sandboxes and appends suffix to them. An error gives no
// completion: a shell has nowhere to show it.
func (s *session) sandboxNames(many bool, suffix string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveDefault
		}
		names, err := s.names(onOwnBehalf(cmd.Context()))
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var found []cobra.Completion
		for _, name := range names {
			if strings.HasPrefix(name, toComplete) {
				found = append(found, name+suffix)
			}
		}
		if suffix != "" {
			return found, cobra.ShellCompDirectiveNoSpace // a path follows
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func (s *session) names(ctx context.Context) ([]string, error) {
	dir, err := s.dir.absolute()
	if err != nil {
		return nil, err
	}
	e, err := s.engine()
	if err != nil {
		return nil, err
	}
	infos, err := e.List(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(infos))
	for _, info := range infos {
		names = append(names, info.Name)
	}
	return names, nil
}
