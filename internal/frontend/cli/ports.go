package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type portsOptions struct {
	console *console
	ports   func(ctx context.Context, dir, name string) ([]engine.Port, error)

	dir, name string
	json      bool
}

func newPorts(s *session) *cobra.Command {
	o := &portsOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "ports NAME",
		Short: "Show the ports of this machine that lead into a sandbox",
		Long: `Show the ports that container.ports in .litterbox.toml names: the number that a
server inside must listen on, which is PORT_NAME in its environment, and the port
of this machine that leads to it. A stopped sandbox keeps its numbers.`,
		Example: `  litterbox ports fix-login
  litterbox ports fix-login --json`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.ports, o.dir, o.name = e.Ports, dir, args[0]
			return runPorts(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array")
	return cmd
}

func runPorts(ctx context.Context, o *portsOptions) error {
	ports, err := o.ports(ctx, o.dir, o.name)
	if err != nil {
		return err
	}
	if o.json {
		return o.console.document(list(ports))
	}
	if len(ports) == 0 {
		o.console.note(`no ports; name them with ports = ["web"] below [container] in .litterbox.toml`)
		return nil
	}
	rows := [][]string{{"PORT", "INSIDE", "HOST", "LISTENS", "URL"}}
	for _, p := range ports {
		listens := p.Address
		if !p.Open {
			listens = "-"
		}
		rows = append(rows, []string{p.Name, number(p.Inside), number(p.Host), listens, p.URL})
	}
	return o.console.table(rows)
}

// number is a port, or a dash before it is chosen.
func number(port int) string {
	if port == 0 {
		return "-"
	}
	return decimal(port)
}
