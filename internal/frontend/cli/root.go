package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The groups of the first help page.
const (
	groupWork    = "work"
	groupSee     = "see"
	groupNetwork = "network"
	groupAgents  = "agents"
	groupBring   = "bring"
	groupSystem  = "system"
)

// newRoot builds the command tree; only, unless it is empty, names the one command
// to build.
//
// To add a command: 1. a file with its options, constructor and run function;
// 2. a line in commands; 3. a help page: go test ./internal/frontend/cli -update;
// 4. a script in test/script.
func newRoot(s *session, only string) *cobra.Command {
	root := &cobra.Command{
		Use:   "litterbox [-C DIR] COMMAND",
		Short: "An isolated box for every coding agent",
		Long: `litterbox gives every coding agent an isolated copy of your git repository on
a branch of its own. What it does there cannot reach the rest of the machine;
its results come back as commits that you review and merge.`,
		Example: `  litterbox create fix-login
  litterbox exec fix-login -- make test
  litterbox diff fix-login
  litterbox merge fix-login`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version, _ := cmd.Flags().GetBool("version"); version {
				return runVersion(cmd.Context(), &versionOptions{console: s.console, version: s.version})
			}
			return cmd.Help()
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		// Each level parses its own flags, so that -C before diff is litterbox's
		// and -C after it is git's.
		TraverseChildren:  true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.PersistentFlags().VarP(&s.dir, "directory", "C", "work in `DIR` instead of the current directory")
	root.Flags().BoolP("version", "v", false, "print the version")
	root.SetHelpFunc(writeHelp)
	root.SetHelpCommand(newHelp())
	root.SetUsageFunc(func(*cobra.Command) error { return nil })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.Wrap(fault.Invalid, readableFlagError(err), "cannot read the flags of %s", cmd.CommandPath()).
			WithHint("%s --help", cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Work in a sandbox"},
		&cobra.Group{ID: groupSee, Title: "See what happened"},
		&cobra.Group{ID: groupNetwork, Title: "What it may reach"},
		&cobra.Group{ID: groupAgents, Title: "Let agents in"},
		&cobra.Group{ID: groupBring, Title: "Bring it home, or not"},
		&cobra.Group{ID: groupSystem, Title: "This machine"},
	)
	for _, c := range commands() {
		if only != "" && c.name != only {
			continue
		}
		made := c.build(s)
		made.GroupID = c.group
		root.AddCommand(made)
	}
	if only == "" {
		root.AddCommand(newExitCodes())
	}
	return root
}

// command is how one command is made, and its place on the first help page.
type command struct {
	group, name string
	build       func(*session) *cobra.Command
}

// commands lists them. The names stand here as well as in each command, so that a
// start of the program builds the one that was typed and no other: all of them
// with their flags take as long as a short command.
func commands() []command {
	return []command{
		{groupWork, "create", newCreate},
		{groupWork, "spawn", newSpawn},
		{groupWork, "exec", newExec},
		{groupWork, "shell", newShell},
		{groupWork, "run", newRun},
		{groupWork, "read", newRead},
		{groupWork, "write", newWrite},
		{groupWork, "cp", newCp},
		{groupWork, "sync", newSync},
		{groupWork, "ssh-config", newSSHConfig},
		{groupWork, "code", newCode},
		{groupWork, "milestone", newMilestone},
		{groupWork, "update", newUpdate},
		{groupWork, "snapshot", newSnapshot},
		{groupWork, "restore", newRestore},
		{groupWork, "rewind", newRewind},
		{groupWork, "fork", newFork},
		{groupWork, "rename", newRename},
		{groupWork, "install", newInstall},
		{groupWork, "build", newBuild},
		{groupWork, "golden", newGolden},
		{groupWork, "service", newService},
		{groupWork, "open", newOpen},
		{groupWork, "stop", newStop},
		{groupWork, "start", newStart},
		{groupWork, "pause", newPause},
		{groupWork, "resume", newResume},
		{groupWork, "limits", newLimits},
		{groupWork, "env", newEnv},
		{groupWork, "init", newInit},
		{groupSee, "list", newList},
		{groupSee, "status", newStatus},
		{groupSee, "ports", newPorts},
		{groupSee, "log", newLog},
		{groupSee, "diff", newDiff},
		{groupSee, "difftool", newDiffTool},
		{groupSee, "browse", newBrowse},
		{groupSee, "branches", newBranches},
		{groupSee, "snapshots", newSnapshots},
		{groupSee, "compare", newCompare},
		{groupSee, "audit", newAudit},
		{groupSee, "path", newPath},
		{groupSee, "cycles", newCycles},
		{groupSee, "events", newEvents},
		{groupSee, "watch", newWatch},
		{groupSee, "top", newTop},
		{groupSee, "cost", newCost},
		{groupSee, "metrics", newMetrics},
		{groupNetwork, "network", newNetwork},
		{groupNetwork, "allow", newAllow},
		{groupNetwork, "deny", newDeny},
		{groupNetwork, "approve", newApprove},
		{groupNetwork, "secrets", newSecrets},
		{groupAgents, "mcp", newMCP},
		{groupAgents, "agent", newAgent},
		{groupBring, "apply", newApply},
		{groupBring, "merge", newMerge},
		{groupBring, "mergetool", newMergeTool},
		{groupBring, "sync-back", newSyncBack},
		{groupBring, "watch-back", newWatchBack},
		{groupBring, "delete", newDelete},
		{groupBring, "teardown", newTeardown},
		{groupBring, "trash", newTrash},
		{groupSystem, "trust", newTrust},
		{groupSystem, "config", newConfig},
		{groupSystem, "doctor", newDoctor},
		{groupSystem, "redteam", newRedteam},
		{groupSystem, "machine", newMachine},
		{groupSystem, "reattach", newReattach},
		{groupSystem, "df", newDf},
		{groupSystem, "prune", newPrune},
		{groupSystem, "demo", newDemo},
		{groupSystem, "completion", newCompletion},
		{groupSystem, "version", newVersion},
	}
}

// typed returns the command that the arguments name; "" if they name none that
// can be made alone, such as one with a typing error, or one that needs to know
// the others.
func typed(args []string) string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch {
		case (args[0] == "-C" || args[0] == "--directory") && len(args) > 1:
			args = args[2:]
		case strings.HasPrefix(args[0], "-C") && len(args[0]) > 2, strings.HasPrefix(args[0], "--directory="):
			args = args[1:]
		default:
			return ""
		}
	}
	if len(args) == 0 || args[0] == "completion" {
		return ""
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.name
		}
	}
	return ""
}

func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fault.New(fault.Invalid, "cannot run %q: there is no such command", args[0])
	if instead := meantBy(args[0]); instead != "" {
		return err.WithHint("litterbox %s", instead)
	}
	if args[0] == "" { // every name begins with it
		return err.WithHint("litterbox help")
	}
	cmd.SuggestionsMinimumDistance = 1
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return err.WithHint("litterbox %s", near[0])
	}
	// Two errors, such as a swap, are a typing error where the first letter is
	// right: two other letters make "nope" a "code".
	cmd.SuggestionsMinimumDistance = 2
	for _, near := range cmd.SuggestionsFor(args[0]) {
		if near[0] == args[0][0] {
			return err.WithHint("litterbox %s", near)
		}
	}
	return err.WithHint("litterbox help")
}

// meantBy is the command for a word that other programs use; "" for none.
func meantBy(word string) string {
	switch word {
	case "rm", "remove", "destroy", "kill":
		return "delete"
	case "ps", "sandboxes":
		return "list"
	case "attach", "enter", "ssh":
		return "shell"
	case "show", "inspect", "info":
		return "status"
	case "cat":
		return "read"
	case "mv", "move":
		return "rename"
	case "new", "up":
		return "create"
	case "down":
		return "stop"
	}
	return ""
}

// readableFlagError rewords the errors of strconv and time about a flag's value.
func readableFlagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	want := ""
	switch invalid.GetFlag().Value.Type() {
	case "duration":
		want = "a duration such as 90s or 5m"
	case "int", "int64", "uint", "uint64":
		want = "a whole number"
	case "bool":
		want = "true or false"
	default:
		return err
	}
	return fault.New(fault.Invalid, "--%s must be %s, not %q", invalid.GetFlag().Name, want, invalid.GetValue())
}

// wantArgs checks the number of arguments; a maximum of -1 means any.
func wantArgs(minimum, maximum int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= minimum && (maximum < 0 || len(args) <= maximum) {
			return nil
		}
		return usageError(cmd, "%s where its usage is %q", counted(len(args), "argument", "arguments"), cmd.UseLine())
	}
}

// exclusive refuses two of the flags together, before arguments are counted. Where
// one is typed, completion offers none of the others. Call it on a command whose
// Args are set.
func exclusive(cmd *cobra.Command, names ...string) {
	cmd.MarkFlagsMutuallyExclusive(names...) // its own error comes later, and names groups
	next := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		var typed []string
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				typed = append(typed, "--"+name)
			}
		}
		if len(typed) > 1 {
			return usageError(cmd, "%s and %s exclude each other", typed[0], typed[1])
		}
		if next == nil {
			return nil
		}
		return next(cmd, args)
	}
}

// usageError is a wrong command line.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return fault.Wrap(fault.Invalid, fault.New(fault.Invalid, format, args...), "cannot run %s", cmd.CommandPath()).
		WithHint("%s --help", cmd.CommandPath())
}
