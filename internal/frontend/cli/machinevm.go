package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// aboutVM is the common text of the commands about the virtual machine.
const aboutVM = `Sandboxes of the driver lima share one virtual machine of Lima's, the instance
"litterbox". It is made and started by the first command that needs it; [vm] in your
own configuration says what it is given. Sandboxes of the driver lima-vm have one each,
which starts, stops and goes with its sandbox.`

func newMachineStatus(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the virtual machine that sandboxes share",
		Long: `Show the virtual machine that sandboxes share with the sandboxes in it, and the virtual
machines of single sandboxes. It does not start anything. The exit code is 8 when the
shared machine does not run.

` + aboutVM,
		Example:           "  litterbox machine status",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, _ string, _ []string) error {
			vm, err := e.VMStatus(ctx)
			if err == nil {
				err = printVM(s.console, vm, json)
			}
			if err == nil && vm.State != "running" {
				return statusError(exitCode(fault.Unavailable))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object; sizes are in bytes")
	return cmd
}

func newMachineStart(s *session) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start the virtual machine, or create it",
		Long: `Start the virtual machine that sandboxes share. Create it if it does not exist, and
repair it if it was interrupted. The first start downloads an image and takes minutes.

` + aboutVM,
		Example:           "  litterbox machine start",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			vm, err := e.StartVM(ctx, dir)
			if err != nil {
				return err
			}
			return printVM(s.console, vm, json)
		}),
	}
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object; sizes are in bytes")
	return cmd
}

func newMachineStop(s *session) *cobra.Command {
	var json, yes bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop the virtual machine and its sandboxes",
		Long: `Stop the virtual machine that sandboxes share. After you confirm, its running
sandboxes are committed and stopped first. Their files stay in it; the next command
that needs them starts it again.

` + aboutVM,
		Example:           "  litterbox machine stop --yes",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			request := engine.VMRequest{Dir: dir}
			if !yes {
				request.Confirm = func(vm engine.VM) (bool, error) {
					return s.console.confirmVM(ctx, "stopping the virtual machine ends sandboxes that run: "+strings.Join(vm.Running, ", "), "litterbox machine stop --yes")
				}
			}
			vm, err := e.StopVM(ctx, request)
			if err != nil {
				return err
			}
			return printVM(s.console, vm, json)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "end running sandboxes without asking")
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object; sizes are in bytes")
	return cmd
}

func newMachineRecreate(s *session) *cobra.Command {
	var json, yes bool
	cmd := &cobra.Command{
		Use:   "recreate",
		Short: "Recreate the virtual machine",
		Long: `Recreate the virtual machine that sandboxes share, from the current configuration.
After you confirm, its content is lost: uncommitted files of its sandboxes, ignored
files and homes. Commits are on this machine and stay. A configuration that Lima
does not accept is refused before anything is lost.

` + aboutVM,
		Example:           "  litterbox machine recreate",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			request := engine.VMRequest{Dir: dir}
			if !yes {
				request.Confirm = func(vm engine.VM) (bool, error) {
					what := "recreating the virtual machine deletes all that is in it"
					if len(vm.Sandboxes) > 0 {
						what += ", with uncommitted files and homes of the sandboxes " + strings.Join(vm.Sandboxes, ", ")
					}
					if len(vm.Deleted) > 0 {
						what += ", with the files of deleted sandboxes in the trash: " + strings.Join(vm.Deleted, ", ")
					}
					return s.console.confirmVM(ctx, what, "litterbox machine recreate --yes")
				}
			}
			vm, err := e.RecreateVM(ctx, request)
			if err != nil {
				return err
			}
			return printVM(s.console, vm, json)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "lose what it holds without asking")
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object; sizes are in bytes")
	return cmd
}

// confirmVM asks on a terminal, and names the command that says yes elsewhere.
func (c *console) confirmVM(ctx context.Context, what, command string) (bool, error) {
	if !c.canAsk() {
		return false, fault.New(fault.Denied, "%s: that needs confirmation", what).WithHint("%s", command)
	}
	if err := c.print("%s\n", clean(what)); err != nil {
		return false, err
	}
	return c.ask(ctx, "Go on?")
}

func newMachineShell(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "shell [-- COMMAND...]",
		Short: "Open a shell in the virtual machine, outside of sandboxes",
		Long: `Open a shell in the virtual machine that sandboxes share, or run a command there, to
find out what is wrong with it. It runs outside of every sandbox, may become root by
sudo, and its changes are in no commit; the audit log has the command. The command's
exit code passes through.

` + aboutVM,
		Example: `  litterbox machine shell
  litterbox machine shell -- df -h`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			argv, env, err := e.VMShell(ctx, dir, args)
			if err != nil {
				return err
			}
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(env, "TERM="+os.Getenv("TERM")), os.Stdin, s.console.stdout, s.console.stderr
			err = cmd.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return statusError(exit.ExitCode())
			}
			if err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot open a shell in the virtual machine")
			}
			return nil
		}),
	}
}

func newMachineLogs(s *session) *cobra.Command {
	lines := 40
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the ends of the virtual machine's logs",
		Long: `Show the ends of the logs of the virtual machine that sandboxes share: what Lima did,
and what the machine wrote on its console.

` + aboutVM,
		Example:           "  litterbox machine logs -n 200",
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, _ string, _ []string) error {
			files, err := e.VMLogs(ctx)
			for _, file := range files {
				if err == nil {
					err = s.console.print("==> %s\n", clean(file))
				}
				if err == nil {
					err = printEnd(s.console, file, lines)
				}
			}
			return err
		}),
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", lines, "the last `N` lines of each")
	return cmd
}

// printEnd shows the last lines of a file that the machine may have written.
func printEnd(c *console, path string, most int) error {
	const longest = 1 << 20
	file, err := os.Open(path)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read the log")
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > longest {
		if _, err := file.Seek(-longest, io.SeekEnd); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot read the log")
		}
	}
	var kept []string
	scanner := bufio.NewScanner(io.LimitReader(file, longest))
	scanner.Buffer(nil, longest+1)
	for scanner.Scan() {
		if kept = append(kept, scanner.Text()); len(kept) > max(most, 0) {
			kept = kept[1:]
		}
	}
	for _, line := range kept {
		if err := c.print("%s\n", clean(line)); err != nil {
			return err
		}
	}
	return scanner.Err()
}

func printVM(c *console, vm engine.VM, json bool) error {
	if json {
		vm.Sandboxes, vm.Running, vm.Singles = list(vm.Sandboxes), list(vm.Running), list(vm.Singles)
		return c.document(vm)
	}
	rows := [][]string{{"machine", vm.Name + ", " + vm.Driver}, {"state", vm.State}}
	if vm.Trouble != "" {
		rows = append(rows, []string{"trouble", vm.Trouble})
	}
	if vm.Dir != "" {
		rows = append(rows,
			[]string{"has", strconv.Itoa(vm.CPUs) + " processors, " + amount(vm.Memory) + " of memory, a disk of " + amount(vm.Disk)},
			[]string{"made by", "Lima " + vm.Version + ", " + vm.Type + ", " + vm.Architecture},
			[]string{"kept in", vm.Dir})
	}
	if vm.Changed {
		rows = append(rows, []string{"changed", "[vm] is not what it was made with: litterbox machine stop, then start, gives processors and memory; recreate the rest"})
	}
	if len(vm.Sandboxes) > 0 {
		rows = append(rows, []string{"sandboxes", strings.Join(vm.Sandboxes, ", ")})
	}
	if err := c.table(rows); err != nil || len(vm.Singles) == 0 {
		return err
	}
	if err := c.print("\n"); err != nil {
		return err
	}
	return printSingles(c, vm.Singles)
}

// printSingles lists the virtual machines of single sandboxes.
func printSingles(c *console, all []engine.SingleVM) error {
	rows := [][]string{{"VIRTUAL MACHINE", "STATE", "SANDBOX", "PROCESSORS", "MEMORY"}}
	for _, one := range all {
		state := one.State
		if one.Trouble != "" {
			state += ": " + one.Trouble
		}
		rows = append(rows, []string{clean(one.Name), clean(state), cmp.Or(clean(one.Sandbox), "-"), strconv.Itoa(one.CPUs), amount(one.Memory)})
	}
	return c.table(rows)
}
