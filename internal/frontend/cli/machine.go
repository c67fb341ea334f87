package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// newMachine is the group of commands about other machines.
//
// To add one: a constructor in a file of its own, and a word below.
func newMachine(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "machine COMMAND",
		Short: "Use other machines for sandboxes",
		Long: `Use other machines for sandboxes: the repository stays here, and commands run there.
litterbox create NAME --machine MACHINE makes a sandbox on one; commits, diffs,
merges, ports and network rules work as for a sandbox on this machine.
add, list, test and remove are for hosts that ssh reaches, build-image is for the
driver libvirt. The others are for the virtual machine that the sandboxes of
litterbox create NAME --driver lima share; status and list show those of the driver
lima-vm too.`,
		Example: `  litterbox machine add big ssh://me@big.example.com
  litterbox create fix-login --machine big`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError(cmd, "litterbox machine has no command %q", args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMachineAdd(s), newMachineList(s), newMachineTest(s), newMachineRemove(s), newMachineBuildImage(s),
		newMachineStatus(s), newMachineStart(s), newMachineStop(s), newMachineRecreate(s), newMachineShell(s), newMachineLogs(s))
	return cmd
}

func newMachineAdd(s *session) *cobra.Command {
	var request engine.MachineRequest
	var json bool
	cmd := &cobra.Command{
		Use:   "add NAME ssh://[USER@]HOST[:PORT]",
		Short: "Add a host that ssh reaches",
		Long: `Add a Linux host that your own ssh reaches, with your configuration, your agent and
your jump hosts; HOST may be a name from ~/.ssh/config. The host needs neither root
nor installed packages: litterbox copies a program (8 MB) to a directory below
~/.local/state, which litterbox machine remove deletes. ssh must work without
questions: neither for a password nor about the host's key.`,
		Example: `  litterbox machine add big ssh://me@big.example.com
  litterbox machine add lab ssh://root@10.0.0.7:2222 --identity ~/.ssh/lab`,
		Args:              wantArgs(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			request.Dir, request.Name, request.Address = dir, args[0], args[1]
			added, status, err := e.AddMachine(ctx, request)
			if err != nil {
				return err
			}
			if json {
				added.Sandboxes = list(added.Sandboxes)
				return s.console.document(added)
			}
			if err := s.console.print("added the machine %s, %s/%s\n", clean(added.Name), clean(added.System), clean(added.Architecture)); err != nil {
				return err
			}
			return printMachine(s.console, added.Name, status)
		}),
	}
	cmd.Flags().StringVar(&request.Identity, "identity", "", "log in with the private key in `FILE` and no other")
	cmd.Flags().BoolVar(&json, "json", false, "print the machine as one JSON object")
	return cmd
}

func newMachineList(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:               "list",
		Short:             "List the machines that you have added",
		Long:              "List the machines that you have added, and how many sandboxes are on each. It does\nnot contact them; litterbox machine test does. Virtual machines of single sandboxes\nstand first, with their states; --json leaves them to litterbox machine status.",
		Example:           "  litterbox machine list",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, _ string, _ []string) error {
			all, err := e.ListMachines(ctx)
			if err != nil {
				return err
			}
			if json {
				for i := range all {
					all[i].Sandboxes = list(all[i].Sandboxes)
				}
				return s.console.document(list(all))
			}
			singles, err := e.SingleVMs(ctx)
			if err != nil {
				return err
			}
			if len(singles) > 0 {
				if err := printSingles(s.console, singles); err != nil {
					return err
				}
			}
			if len(all) == 0 {
				if len(singles) > 0 {
					return nil
				}
				return s.console.print("no machines; litterbox machine add NAME ssh://user@host adds one\n")
			}
			rows := [][]string{{"NAME", "ADDRESS", "SYSTEM", "SANDBOXES", "ADDED"}}
			for _, one := range all {
				rows = append(rows, []string{clean(one.Name), clean(one.Address), clean(one.System + "/" + one.Architecture), strconv.Itoa(len(one.Sandboxes)), ago(s.console.now(), one.AddedAt)})
			}
			return s.console.table(rows)
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON array")
	return cmd
}

func newMachineTest(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Ask a machine whether it can hold sandboxes",
		Long: `Connect to a machine and show the isolation of its sandboxes, the time of an answer,
the difference between its clock and this one, and its free memory and disk. The
exit code is 8 when full isolation is not available there. litterbox doctor
--machine NAME shows what else its sandboxes can do.`,
		Example:           "  litterbox machine test big",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.machineNames(1),
		RunE: s.action(func(ctx context.Context, e useCases, _ string, args []string) error {
			status, err := e.TestMachine(ctx, args[0])
			if err != nil {
				return err
			}
			if json {
				status.Tiers = list(status.Tiers)
				err = s.console.document(status)
			} else {
				err = printMachine(s.console, args[0], status)
			}
			if err == nil && status.Isolation != sandbox.IsolationFull {
				return statusError(exitCode(fault.Unavailable))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object; times are in nanoseconds, sizes in bytes")
	return cmd
}

func newMachineRemove(s *session) *cobra.Command {
	var forget bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a machine, and what litterbox put on it",
		Long: `Remove a machine: the directory that litterbox has there is deleted, with the
program and the cached files in it. A machine is kept while it has sandboxes, or
files of deleted ones that the trash keeps. With --forget the machine is not asked,
and its directory stays as it is.`,
		Example:           "  litterbox machine remove big",
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.machineNames(1),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if err := e.RemoveMachine(ctx, dir, args[0], forget); err != nil {
				return err
			}
			return s.console.print("removed the machine %s\n", clean(args[0]))
		}),
	}
	cmd.Flags().BoolVar(&forget, "forget", false, "only forget it; its files stay there")
	return cmd
}

// printMachine shows a machine's report about itself.
func printMachine(c *console, name string, status engine.MachineStatus) error {
	rows := [][]string{{"machine", name}}
	for _, tier := range status.Tiers {
		verdict := "available"
		if !tier.Available {
			verdict = "not available: " + strings.Join(tier.Missing, "; ")
		}
		rows = append(rows, []string{"isolation", string(tier.Isolation) + ", " + verdict})
		for _, mend := range tier.Mend {
			rows = append(rows, []string{"to fix it", mend})
		}
	}
	measured := func(bytes int64) string {
		if bytes < 0 {
			return "not measured"
		}
		return amount(bytes)
	}
	rows = append(rows,
		[]string{"answers in", status.RoundTrip.Round(10 * time.Microsecond).String()},
		[]string{"clock", clockOf(status.Clock)},
		[]string{"processors", strconv.Itoa(status.Processors) + ", load " + strconv.FormatFloat(status.Load, 'f', 2, 64)},
		[]string{"memory free", measured(status.Memory)},
		[]string{"disk free", measured(status.Free)},
	)
	return c.table(rows)
}

func clockOf(ahead time.Duration) string {
	switch {
	case ahead > time.Second:
		return ahead.Round(time.Second).String() + " ahead of this machine's"
	case ahead < -time.Second:
		return (-ahead).Round(time.Second).String() + " behind this machine's"
	}
	return "as here"
}

const chosenMachine = "make it on the machine `NAME`, one that litterbox machine list shows"

// machineFlag adds --machine, which chooses the driver of a machine.
func (s *session) machineFlag(cmd *cobra.Command, driver *string, usage string) {
	cmd.Flags().Var((*machineValue)(driver), "machine", usage)
	_ = cmd.RegisterFlagCompletionFunc("machine", s.machineNames(-1)) // fails for a flag that is not there
}

// machinesFlag adds --machines, several to choose from, beside --driver and
// --machine.
func (s *session) machinesFlag(cmd *cobra.Command, machines *[]string, usage string) {
	cmd.Flags().StringSliceVar(machines, "machines", nil, usage)
	names := s.machineNames(-1)
	_ = cmd.RegisterFlagCompletionFunc("machines", func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := toComplete[:strings.LastIndex(toComplete, ",")+1]
		found, _ := names(cmd, args, strings.TrimPrefix(toComplete, before))
		for i := range found {
			found[i] = before + found[i]
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	exclusive(cmd, "machines", "machine")
	exclusive(cmd, "machines", "driver")
}

// onMachine says where a new sandbox is, unless it is here.
func onMachine(info engine.Info) string {
	if name := engine.MachineOf(info.Driver); name != "" {
		return " on the machine " + clean(name)
	}
	return ""
}

// machineValue is the name of a machine, kept as that of its driver.
type machineValue string

// Set implements pflag.Value.
func (v *machineValue) Set(name string) error {
	*v = machineValue(engine.OnMachine(name))
	return nil
}

// String implements pflag.Value.
func (*machineValue) String() string { return "" }

// Type implements pflag.Value.
func (*machineValue) Type() string { return "string" }

// machineNames completes names of machines, for at most that many arguments; -1 is
// a flag's value.
func (s *session) machineNames(most int) cobra.CompletionFunc {
	return s.complete(func(ctx context.Context, e useCases, _ string, args []string, _ string) ([]string, error) {
		if most >= 0 && len(args) >= most {
			return nil, nil
		}
		all, err := e.ListMachines(ctx)
		var names []string
		for _, one := range all {
			names = append(names, one.Name)
		}
		return names, err
	})
}

// knownDriver refuses an unknown driver. It does not contact a machine.
func knownDriver(ctx context.Context, e useCases) func(name string) error {
	return func(name string) error {
		all, err := e.ListMachines(ctx)
		if err != nil {
			return err
		}
		for _, one := range all {
			if engine.OnMachine(one.Name) == name {
				return nil
			}
		}
		_, err = e.DriverReport(name)
		return err
	}
}
