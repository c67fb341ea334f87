package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type dfOptions struct {
	console *console
	usage   func(ctx context.Context, dir string, all bool) (engine.DiskUsage, error)

	dir  string
	all  bool
	json bool
}

func newDf(s *session) *cobra.Command {
	o := &dfOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "df [--all]",
		Short: "Show how much disk the sandboxes take",
		Long: `Show how much disk each sandbox of this repository takes: its changed files, its
home and the rest; and what the sandboxes share, which is stored once. litterbox
prune first removes what no sandbox uses. --all also shows the containers of Docker
and Podman that litterbox has made, with their volumes; the sum is without them.`,
		Example: `  litterbox df
  litterbox df --all --json`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.usage, o.dir = e.DiskUsage, dir
			return runDf(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "include all repositories")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object; sizes are in bytes")
	return cmd
}

func runDf(ctx context.Context, o *dfOptions) error {
	usage, err := o.usage(ctx, o.dir, o.all)
	if err != nil {
		return err
	}
	if o.json {
		usage.Sandboxes, usage.Caches = list(usage.Sandboxes), list(usage.Caches)
		return o.console.document(usage)
	}
	rows := [][]string{{"SANDBOX", "STATE", "CHANGES", "HOME", "OTHER", "TOTAL"}}
	for _, one := range usage.Sandboxes {
		name := one.Name
		if o.all {
			name = one.Repository + ": " + name
		}
		changes, home := amount(one.Changes), amount(one.Home)
		if one.Unknown {
			changes, home = "unknown", "unknown"
		}
		rows = append(rows, []string{name, string(one.State), changes, home, amount(one.Other), amount(one.Total)})
	}
	if err := o.console.table(rows); err != nil {
		return err
	}
	for _, cache := range usage.Caches {
		if err := o.console.print("shared by the sandboxes of %s: %s in %d layers, %s of it unused\n",
			clean(cache.Repository), amount(cache.Total), cache.Entries, amount(cache.Unused)); err != nil {
			return err
		}
	}
	if usage.Images > 0 {
		if err := o.console.print("layers of images, shared by all: %s\n", amount(usage.Images)); err != nil {
			return err
		}
	}
	if usage.Frozen > 0 {
		if err := o.console.print("frozen for snapshots and forks: %s\n", amount(usage.Frozen)); err != nil {
			return err
		}
	}
	if usage.Trash > 0 {
		if err := o.console.print("files of deleted sandboxes in the trash: %s\n", amount(usage.Trash)); err != nil {
			return err
		}
	}
	for _, one := range usage.Machines {
		if err := o.console.print("%s\n", machineUsage(one)); err != nil {
			return err
		}
	}
	return o.console.print("logs %s, together %s\n", amount(usage.Logs), amount(usage.Total))
}

// machineUsage is a line about a container or a virtual machine.
func machineUsage(one engine.MachineUsage) string {
	text := clean(one.Driver) + " " + clean(cmp.Or(one.Kind, "container")) + " " + clean(one.Name)
	if one.Image != "" {
		text += " of " + clean(one.Image)
	}
	if one.Trouble != "" {
		return text + ": not measured: " + clean(one.Trouble)
	}
	size := "size not known"
	if one.Bytes >= 0 {
		size = amount(one.Bytes)
	}
	state := "stopped"
	if one.Running {
		state = "running"
	}
	in := counted(len(one.Sandboxes), "sandbox", "sandboxes")
	if n := len(one.Goldens); n > 0 {
		in += " and " + counted(n, "golden", "goldens")
	}
	return text + ": " + size + ", " + state + ", " + in + " in it"
}

// amount is a size as people read it, in powers of two.
func amount(n int64) string {
	const units = "KMGTPE"
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/(1<<10), 0
	for value >= 1000 && unit < len(units)-1 {
		value, unit = value/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}
