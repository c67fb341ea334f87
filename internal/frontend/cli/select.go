package cli

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// selection names sandboxes of one repository: by name, by pattern, or all.
type selection struct {
	names []string // names and patterns, as typed
	all   bool
}

// isPattern reports whether an argument is a pattern, not a name: names have none
// of these characters.
func isPattern(arg string) bool { return strings.ContainsAny(arg, "*?[") }

// many reports whether more than one sandbox may be meant.
func (s selection) many() bool {
	return s.all || len(s.names) > 1 || slices.ContainsFunc(s.names, isPattern)
}

// wildcard reports whether the sandboxes are not named one by one.
func (s selection) wildcard() bool { return s.all || slices.ContainsFunc(s.names, isPattern) }

// listing is engine.List.
type listing func(ctx context.Context, dir string, all bool) ([]engine.Info, error)

// pick gives the selected sandboxes, each once: those of patterns in the order of
// the listing. A name that is not listed is an error, and so is a pattern without a
// match.
func (s selection) pick(ctx context.Context, list listing, dir string) ([]engine.Info, error) {
	infos, err := list(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	if s.all {
		return infos, nil
	}
	var picked []engine.Info
	for _, arg := range s.names {
		if _, err := path.Match(arg, ""); err != nil {
			return nil, fault.New(fault.Invalid, "cannot read the pattern %q: %v", arg, err).WithHint("litterbox list")
		}
		found := false
		for _, info := range infos {
			if !matches(arg, info) {
				continue
			}
			found = true
			if !slices.ContainsFunc(picked, func(other engine.Info) bool { return other.Name == info.Name }) {
				picked = append(picked, info)
			}
		}
		if !found {
			if isPattern(arg) {
				return nil, fault.New(fault.NotFound, "no sandbox of this repository matches %q", arg).WithHint("litterbox list")
			}
			return nil, engine.NoSandbox(arg, namesOf(infos))
		}
	}
	return picked, nil
}

func namesOf(infos []engine.Info) []string {
	var names []string
	for _, info := range infos {
		names = append(names, info.Name)
	}
	return names
}

// matches compares a name or a pattern with a sandbox. A worker is also known by
// the part of its name after the project: worker-3.
func matches(arg string, info engine.Info) bool {
	if ok, err := path.Match(arg, info.Name); err == nil && ok {
		return true
	}
	if info.Worker == nil {
		return false
	}
	at := strings.LastIndex(info.Name, "worker-")
	if at < 0 || !isPattern(arg) {
		return false
	}
	ok, err := path.Match(arg, info.Name[at:])
	return err == nil && ok
}

// allFlag adds --all to a command that takes names and patterns.
func allFlag(cmd *cobra.Command, s *selection) {
	cmd.Flags().BoolVar(&s.all, "all", false, "every sandbox of this repository")
}

// wantSelection demands names, patterns or --all, and not both.
func wantSelection(s *selection) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && !s.all:
			return usageError(cmd, "no sandbox name: give one, or use --all")
		case len(args) > 0 && s.all:
			return usageError(cmd, "a sandbox name and --all exclude each other")
		}
		return nil
	}
}
