package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/redteam"
)

type redteamOptions struct {
	console *console
	attack  func(context.Context, redteam.Options) (redteam.Report, error)

	machines func() ([]engine.Machine, error) // those that can be attacked

	driver, machine string
	image           string
	only            string
	json            bool
}

func newRedteam(s *session) *cobra.Command {
	o := &redteamOptions{console: s.console, attack: redteam.Run}
	o.machines = func() ([]engine.Machine, error) {
		e, err := s.engine()
		if err != nil {
			return nil, err
		}
		return e.ListMachines(context.Background())
	}
	var classes []string
	for _, class := range redteam.Classes() {
		classes = append(classes, string(class))
	}
	cmd := &cobra.Command{
		Use:   "redteam",
		Short: "Attack sandboxes on this machine, to test that they hold",
		Long: `Attack throwaway sandboxes on this machine in ways that sandboxes have been escaped,
and show the results. Each attack has a control: the same attack with nothing in the
way, which must succeed. It touches only its own temporary directories, and uses no
network beyond this machine. The exit code is 1 when anything is open.
docs/reference/redteam.md describes each attack.

With --driver docker or podman the sandboxes are in a separate container, which is
removed at the end; with --machine they are on a host that litterbox machine list
shows. Attacks that prove nothing there are skipped with the reason.

Classes: ` + strings.Join(classes, ", ") + `.`,
		Example: `  litterbox redteam
  litterbox redteam --only network
  litterbox redteam --driver docker --base-image debian:bookworm
  litterbox redteam --json`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runRedteam(ctx, o)
		},
	}
	cmd.Flags().StringVar(&o.driver, "driver", "", "attack sandboxes of `DRIVER`: "+strings.Join(redteam.Drivers(), ", "))
	cmd.Flags().StringVar(&o.machine, "machine", "", "attack sandboxes on the machine `NAME`")
	_ = cmd.RegisterFlagCompletionFunc("machine", s.machineNames(-1)) // fails for a flag that is not there
	exclusive(cmd, "driver", "machine")
	cmd.Flags().StringVar(&o.image, "base-image", "", "use containers of `IMAGE` instead of the default one")
	cmd.Flags().StringVar(&o.only, "only", "", "try the attacks of `CLASS` alone")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the report as one JSON object")
	for name, values := range map[string][]string{"driver": redteam.Drivers(), "only": classes} {
		completion := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		_ = cmd.RegisterFlagCompletionFunc(name, completion) // fails for a flag that is not there
	}
	return cmd
}

func runRedteam(ctx context.Context, o *redteamOptions) error {
	c := o.console
	machine, err := o.attacked()
	if err != nil {
		return err
	}
	var printed error
	report, err := o.attack(ctx, redteam.Options{
		Driver: o.driver, Machine: machine, BaseImage: o.image, Only: redteam.Class(o.only), Env: c.env,
		Began: func(class redteam.Class, attack string, done, total int) {
			c.progress.update(string(class)+": "+attack, done, total)
		},
		Ended: func(r redteam.Result) {
			if !o.json && printed == nil {
				printed = printAttack(c, r)
			}
		},
	})
	c.progress.clear()
	if err == nil {
		err = printed
	}
	if err != nil {
		return err
	}
	if o.json {
		report.Attacks = list(report.Attacks)
		err = c.document(report)
	} else {
		err = c.print("\ndriver %s, isolation %s: %d closed, %d open, %d skipped\n", clean(report.Driver), clean(report.Isolation), report.Closed, report.Open, report.Skipped)
	}
	if err == nil && report.Open > 0 {
		return exitStatus(exitOpen)
	}
	return err
}

// attacked is the machine that was named; nil if there is none.
func (o *redteamOptions) attacked() (*redteam.Machine, error) {
	if o.machine == "" {
		return nil, nil
	}
	all, err := o.machines()
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if one.Name == o.machine {
			return &redteam.Machine{Name: one.Name, Address: one.Address, Identity: one.Identity, Driver: engine.OnMachine(one.Name)}, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no machine %q", o.machine).WithHint("litterbox machine list")
}

// exitOpen says that an attack succeeded.
const exitOpen = 1

func printAttack(c *console, r redteam.Result) error {
	verdict := map[redteam.Verdict]string{redteam.Closed: "closed ", redteam.Open: c.style("31;1", "OPEN   "), redteam.Skipped: "skipped"}[r.Verdict]
	if err := c.print("%s  %s: %s\n", verdict, clean(string(r.Class)), clean(r.Attack)); err != nil {
		return err
	}
	for _, row := range [][2]string{
		{"reason", r.Reason}, {"an escape shows", r.Escape}, {"seen inside", r.Seen}, {"the control", r.Control}, {"defence", r.Defence},
	} {
		if row[1] == "" {
			continue
		}
		if err := c.print("         %-15s  %s\n", row[0], clean(row[1])); err != nil {
			return err
		}
	}
	return nil
}
