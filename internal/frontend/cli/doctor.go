package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type doctorOptions struct {
	console *console
	doctor  func(ctx context.Context, dir string) (engine.Report, error)
	repair  func(context.Context, []engine.Leftover) []engine.Leftover
	one     func(driver string) (engine.DriverReport, error)

	dir    string
	driver string
	fix    bool
	json   bool
}

func newDoctor(s *session) *cobra.Command {
	o := &doctorOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine can isolate",
		Long: `Check what this machine can isolate, and print the command that fixes each gap. For
each agent's client, including those of [agents], it shows where it is installed,
how it logs in inside, and how to fix what is missing. It also finds what crashes have
left behind: processes, control groups, mounts, names, refs and layers that belong to
no sandbox, and files that were never finished; --fix removes them. None of them
contains anyone's work. The exit code is 8 when full isolation is not available.

With --driver it shows what sandboxes of that driver can do here: isolation, files,
mounts, network, limits, measurements, pause, snapshots and forks. With --machine it
shows the same for sandboxes on that machine.`,
		Example: `  litterbox doctor
  litterbox doctor --driver landlock
  litterbox doctor --fix`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.dir, o.doctor, o.repair, o.one = dir, e.Doctor, e.Fix, e.DriverReport
			return runDoctor(ctx, o)
		}),
	}
	s.driverFlag(cmd, &o.driver, "only what `DRIVER` can do here")
	cmd.Flags().BoolVar(&o.fix, "fix", false, "remove what crashes have left behind")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the report as one JSON object")
	exclusive(cmd, "driver", "fix")
	exclusive(cmd, "machine", "fix")
	return cmd
}

func runDoctor(ctx context.Context, o *doctorOptions) error {
	if o.driver != "" {
		return runDriver(o)
	}
	report, err := o.doctor(ctx, o.dir)
	if err != nil {
		return err
	}
	if o.fix {
		report.Leftovers = o.repair(ctx, report.Leftovers)
	}
	if o.json {
		report.Checks, report.Leftovers, report.Drivers = list(report.Checks), list(report.Leftovers), list(report.Drivers)
		err = o.console.document(report)
	} else {
		err = printReport(o.console, report)
	}
	if err == nil && report.Isolation != sandbox.IsolationFull {
		return statusError(exitCode(fault.Unavailable))
	}
	return err
}

// runDriver shows one driver.
func runDriver(o *doctorOptions) error {
	report, err := o.one(o.driver)
	if err != nil {
		return err
	}
	if o.json {
		err = o.console.document(report)
	} else {
		err = printDriver(o.console, report)
	}
	if err == nil && report.Isolation != sandbox.IsolationFull {
		return statusError(exitCode(fault.Unavailable))
	}
	return err
}

func printReport(c *console, report engine.Report) error {
	rows := [][]string{}
	for _, check := range report.Checks {
		rows = append(rows, []string{verdict(check), check.Name, check.Found})
	}
	if err := c.table(rows); err != nil {
		return err
	}
	for _, check := range report.Checks {
		if !check.OK && check.Mend != "" {
			if err := c.print("\nto fix %s:\n  %s\n", clean(check.Name), cleanText(check.Mend)); err != nil {
				return err
			}
		}
	}
	if err := printLeftovers(c, report.Leftovers); err != nil {
		return err
	}
	if err := printDrivers(c, report.Drivers); err != nil {
		return err
	}
	isolation := clean(string(report.Isolation))
	if isolation == "" {
		isolation = "none; no sandbox can be made here"
	}
	if report.Isolation == sandbox.IsolationDegraded {
		isolation += "; litterbox create NAME --allow-degraded makes such sandboxes"
	}
	return c.print("\nisolation: %s\n", isolation)
}

func verdict(check engine.Check) string {
	switch {
	case check.OK:
		return "ok"
	case check.Needed:
		return "missing"
	}
	return "absent" // nice to have
}

func printLeftovers(c *console, found []engine.Leftover) error {
	unfixed := 0
	for i, one := range found {
		if i == 0 {
			if err := c.print("\n"); err != nil {
				return err
			}
		}
		verdict := "left behind"
		switch {
		case one.Fixed:
			verdict = "cleared away"
		case one.Problem != "":
			verdict = "not cleared away (" + one.Problem + ")"
		default:
			unfixed++
		}
		if err := c.print("%s: %s: %s\n", clean(verdict), clean(one.What), clean(one.Where)); err != nil {
			return err
		}
	}
	if unfixed == 0 {
		return nil
	}
	return c.print("clear away %s: litterbox doctor --fix\n", count(unfixed, "leftover"))
}
