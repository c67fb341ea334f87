package cli

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type diffOptions struct {
	console *console
	diff    func(context.Context, engine.DiffRequest) (int, error)

	dir, name string
	args      []string // git's
	from, to  string
	json      bool
}

func newDiff(s *session) *cobra.Command {
	o := &diffOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "diff NAME [--from STEP] [--to STEP] [git diff flags] [PATH...]",
		Short: "Show what a sandbox changed",
		Long: `Show what a sandbox changed since its base, uncommitted changes included. With
--from and --to, show the changes between two of its states: iterations by their
numbers in litterbox log, or snapshots. All flags but these and --json go to git
diff, in their order, and so do the paths, which are relative to the current
directory. On a terminal git's pager shows it. No stopped sandbox is started: where
its files are in a machine, what it has committed is compared.`,
		Example: `  litterbox diff fix-login
  litterbox diff fix-login --from 3 --to s2
  litterbox diff fix-login --stat src`,
		DisableFlagParsing: true,
		ValidArgsFunction:  s.diffStates,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := valueFlags(cmd, args, map[string]*string{"--from": &o.from, "--to": &o.to})
			if err != nil {
				return err
			}
			name, git, help, err := gitArgs(cmd, args, map[string]*bool{"--json": &o.json})
			if help {
				return cmd.Help()
			}
			if err != nil {
				return err
			}
			o.name, o.args = name, withPaths(git)
			return s.command(cmd, func(ctx context.Context, e useCases, dir string) error {
				o.diff, o.dir = e.Diff, dir
				return runDiff(ctx, o)
			})
		},
	}
	cmd.Flags().StringVar(&o.from, "from", "", "begin at a `STEP`: an iteration's number, a snapshot or milestone")
	cmd.Flags().StringVar(&o.to, "to", "", "end at a `STEP`: an iteration's number or a snapshot")
	cmd.Flags().BoolVar(&o.json, "json", false, "print files, their line counts and what could run code as one JSON object")
	return cmd
}

// diffStates completes a sandbox, and behind --from and --to its states.
func (s *session) diffStates(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if n := len(args); n > 1 && (args[n-1] == "--from" || args[n-1] == "--to") {
		return s.statesOf(cmd, args[0], toComplete)
	}
	return s.sandboxNames(false, "")(cmd, args, toComplete)
}

// withPaths puts the -- before the paths at the end of git's arguments, where it
// was left out: git would take them for revisions.
func withPaths(args []string) []string {
	if slices.Contains(args, "--") {
		return args
	}
	first := len(args)
	for first > 0 && !strings.HasPrefix(args[first-1], "-") {
		first--
	}
	if first > 0 && first < len(args) && takesValue(args[first-1]) {
		first++
	}
	if first == len(args) {
		return args
	}
	return slices.Insert(slices.Clone(args), first, "--")
}

// takesValue reports whether a flag of git diff has its value in the next
// argument (git-diff(1), git-difftool(1)).
func takesValue(flag string) bool {
	return slices.Contains([]string{
		"-S", "-G", "-O", "-I", "-l", "-U", "--unified", "--output", "--output-indicator-new", "--output-indicator-old",
		"--output-indicator-context", "--inter-hunk-context", "--word-diff-regex", "--anchored", "--diff-filter", "--src-prefix",
		"--dst-prefix", "--line-prefix", "--ws-error-highlight", "--color-moved-ws", "--diff-algorithm", "--skip-to", "--rotate-to",
		"--find-object", "--max-depth", "--stat-width", "--stat-name-width", "--stat-count",
		"-t", "--tool", "-x", "--extcmd", // of git difftool
	}, flag)
}

func runDiff(ctx context.Context, o *diffOptions) error {
	patience := 0
	if _, ok := terminal(o.console.stdout); ok {
		patience = -1 // git's pager owns the terminal until it is left
	}
	ctx, stop := leavingToGit(ctx, patience)
	defer stop()
	r := engine.DiffRequest{
		Dir: o.dir, Name: o.name, Since: o.from, To: o.to, Args: o.args,
		Stdin: o.console.stdin, Stdout: o.console.stdout, Stderr: o.console.stderr,
	}
	if o.json {
		return diffDocument(ctx, o, r)
	}
	code, err := o.diff(ctx, r)
	if err != nil {
		return err
	}
	return statusError(code)
}

// changedFile is one entry of diff --json.
type changedFile struct {
	Path    string `json:"path"`
	Added   int    `json:"added"` // lines; 0 for a binary file
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary"`
}

// diffDocument reads git's own machine format, in which names are not quoted.
// Renames are off there, because they change the shape of a record.
func diffDocument(ctx context.Context, o *diffOptions, r engine.DiffRequest) error {
	var out bytes.Buffer
	r.Stdin, r.Stdout = io.LimitReader(nil, 0), &out
	risks := []engine.Risk{}
	r.Risky = func(found []engine.Risk) { risks = append(risks, found...) }
	r.Args = append([]string{"--numstat", "-z", "--no-renames", "--no-color"}, o.args...)
	code, err := o.diff(ctx, r)
	if err != nil {
		return err
	}
	files := []changedFile{}
	for record := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\x00"), "\x00") {
		fields := strings.SplitN(record, "\t", 3)
		if len(fields) != 3 {
			if record == "" {
				continue
			}
			return fault.New(fault.Invalid, "cannot use --json with these flags of git diff: %q", o.args)
		}
		file := changedFile{Path: fields[2], Binary: fields[0] == "-"}
		if !file.Binary {
			added, addedErr := strconv.Atoi(fields[0])
			deleted, deletedErr := strconv.Atoi(fields[1])
			if addedErr != nil || deletedErr != nil {
				return fault.New(fault.Invalid, "cannot use --json with these flags of git diff: %q", o.args)
			}
			file.Added, file.Deleted = added, deleted
		}
		files = append(files, file)
	}
	if err := o.console.document(struct {
		Name  string        `json:"name"`
		Files []changedFile `json:"files"`
		Risks []engine.Risk `json:"risks"` // of all that changed
	}{o.name, files, risks}); err != nil {
		return err
	}
	return statusError(code)
}
