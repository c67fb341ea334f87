package cli

import (
	"errors"

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

// newRoot builds the command tree.
//
// To add a command: 1. a file with its options, constructor and run function;
// 2. a line below; 3. a help page: go test ./internal/frontend/cli -update;
// 4. a script in test/script.
func newRoot(s *session) *cobra.Command {
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
	for group, commands := range map[string][]*cobra.Command{
		groupWork: {
			newCreate(s), newSpawn(s), newExec(s), newShell(s), newRun(s), newRead(s), newWrite(s), newCp(s), newSync(s), newSSHConfig(s), newCode(s),
			newMilestone(s), newUpdate(s), newSnapshot(s), newRestore(s), newRewind(s), newFork(s), newRename(s), newInstall(s), newBuild(s), newGolden(s), newService(s), newOpen(s), newStop(s), newStart(s),
			newPause(s), newResume(s), newLimits(s), newEnv(s), newInit(s),
		},
		groupSee:     {newList(s), newStatus(s), newPorts(s), newLog(s), newDiff(s), newDiffTool(s), newBrowse(s), newBranches(s), newSnapshots(s), newCompare(s), newAudit(s), newPath(s), newCycles(s), newEvents(s), newWatch(s), newTop(s), newCost(s), newMetrics(s)},
		groupNetwork: {newNetwork(s), newAllow(s), newDeny(s), newApprove(s), newSecrets(s)},
		groupAgents:  {newMCP(s), newAgent(s)},
		groupBring:   {newApply(s), newMerge(s), newMergeTool(s), newSyncBack(s), newWatchBack(s), newDelete(s), newTeardown(s), newTrash(s)},
		groupSystem:  {newTrust(s), newConfig(s), newDoctor(s), newRedteam(s), newMachine(s), newReattach(s), newDf(s), newPrune(s), newDemo(s), newCompletion(s), newVersion(s)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(newExitCodes())
	return root
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

// usageError is a wrong command line.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return fault.Wrap(fault.Invalid, fault.New(fault.Invalid, format, args...), "cannot run %s", cmd.CommandPath()).
		WithHint("%s --help", cmd.CommandPath())
}
