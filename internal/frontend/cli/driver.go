package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// driverFlag adds --driver, with the existing names.
func (s *session) driverFlag(cmd *cobra.Command, value *string, usage string) {
	s.driverOnlyFlag(cmd, value, usage)
	on := chosenMachine
	if usage != chosenDriver {
		on = strings.ReplaceAll(strings.ReplaceAll(usage, "`DRIVER`", "the machine `NAME`"), " here", "")
	}
	s.machineFlag(cmd, value, on)
	exclusive(cmd, "driver", "machine")
}

// driverOnlyFlag is for what no other machine does.
func (s *session) driverOnlyFlag(cmd *cobra.Command, value *string, usage string) {
	cmd.Flags().StringVar(value, "driver", "", usage)
	names := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		e, err := s.engine()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return e.DriverNames(), cobra.ShellCompDirectiveNoFileComp
	}
	_ = cmd.RegisterFlagCompletionFunc("driver", names) // fails for a flag that is not there
}

const chosenDriver = "make it with `DRIVER`, one that litterbox doctor lists"

// printDriver shows one driver.
func printDriver(c *console, r engine.DriverReport) error {
	can := r.Capabilities
	rows := [][]string{{"driver", r.Name}}
	for _, tier := range can.Isolation {
		verdict := "available"
		if !tier.Available {
			verdict = "not available: " + strings.Join(tier.Missing, "; ")
		}
		rows = append(rows, []string{"isolation", string(tier.Isolation) + ", " + verdict})
		for _, mend := range tier.Mend {
			rows = append(rows, []string{"to fix it", mend})
		}
		for _, lack := range tier.Lacks {
			rows = append(rows, []string{"not isolated", lack})
		}
	}
	rows = append(rows,
		[]string{"system", can.System + "/" + can.Architecture},
		[]string{"files", string(can.Files)},
		[]string{"mounts", string(can.Mounts)},
		[]string{"network", string(can.Network) + ", kept by the " + can.Enforcer},
		[]string{"limits kept", orNone(can.Limits)},
		[]string{"measured", orNone(can.Metrics)},
		[]string{"home", map[bool]string{true: "outlives a stop", false: "goes with a stop"}[can.KeepsHome]},
		[]string{"pause", yesNo(can.Pause)},
		[]string{"snapshots", snapshotsOf(can)},
		[]string{"fork", yesNo(can.Fork)},
	)
	return c.table(rows)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return sandbox.None
	}
	return strings.Join(names, " ")
}

func snapshotsOf(can engine.Capabilities) string {
	if !can.Snapshots.Freeze {
		return "no"
	}
	text := "of a stopped sandbox"
	if can.Snapshots.Live {
		text = "of a running one too"
	}
	if can.Snapshots.Memory {
		text += ", with its processes"
	}
	return text
}

// printDrivers is one line about all drivers.
func printDrivers(c *console, all []engine.DriverReport) error {
	if len(all) == 0 {
		return nil
	}
	var each []string
	for _, one := range all {
		text := clean(one.Name) + " (" + clean(string(one.Isolation)) + ")"
		if one.Isolation == "" {
			text = clean(one.Name) + " (not here)"
		}
		each = append(each, text)
	}
	return c.print("\ndrivers: %s\n", strings.Join(each, ", "))
}

// severalDrivers reports whether a listing must say which sandbox has which.
func severalDrivers(infos []engine.Info) bool {
	for _, info := range infos {
		if info.Driver != infos[0].Driver {
			return true
		}
	}
	return false
}
