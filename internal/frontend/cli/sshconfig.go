package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type sshConfigOptions struct {
	console   *console
	block     func(context.Context, engine.DoorRequest) (engine.DoorResult, error)
	install   func(context.Context, engine.DoorRequest) (engine.DoorResult, error)
	uninstall func(context.Context, engine.DoorRequest) (engine.DoorResult, error)
	hosts     func(context.Context) ([]engine.DoorHost, error)
	exists    func(ctx context.Context, dir, name string) (bool, error)

	dir, name       string
	put, away, json bool
}

func newSSHConfig(s *session) *cobra.Command {
	o := &sshConfigOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "ssh-config [NAME]",
		Short: "Open sandboxes to ssh, scp, rsync, git and editors",
		Long: `Make every sandbox a host for the OpenSSH clients on this machine, as
NAME.litterbox. One block in a separate file serves all sandboxes, present and
future; --install includes it from ~/.ssh/config, and --uninstall removes that
line again, byte for byte. Without either the block is printed.

There is no port, no key and no server inside: ssh starts litterbox, which grants
what exec, shell and cp grant. A stopped sandbox is started. Commands, shells and
files copied in become steps, as usual. Only ports inside are forwarded (-L), not
those of this machine (-R), and no agent (-A): see ssh-agent.enabled.

With NAME it prints the host name of that sandbox. If several repositories have a
sandbox of that name, the host includes the project: fix.website.litterbox.`,
		Example: `  litterbox ssh-config --install
  ssh fix-login.litterbox
  rsync -a fix-login.litterbox:coverage/ coverage/
  git clone fix-login.litterbox:. ../copy`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.block, o.install, o.uninstall, o.hosts, o.exists, o.dir = e.DoorBlock, e.InstallDoor, e.UninstallDoor, e.DoorHosts, e.Exists, dir
			if len(args) > 0 {
				o.name = args[0]
			}
			return runSSHConfig(ctx, o)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.put, "install", false, "include the block in ~/.ssh/config")
	f.BoolVar(&o.away, "uninstall", false, "take it out of ~/.ssh/config again")
	exclusive(cmd, "install", "uninstall")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

// sshConfigDocument is what --json prints.
type sshConfigDocument struct {
	engine.DoorResult
	Hosts []engine.DoorHost `json:"hosts"`
}

func runSSHConfig(ctx context.Context, o *sshConfigOptions) error {
	program, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot find this program")
	}
	hosts, err := o.found(ctx)
	if err != nil {
		return err
	}
	do := o.block
	switch {
	case o.put:
		do = o.install
	case o.away:
		do = o.uninstall
	}
	result, err := do(ctx, engine.DoorRequest{Dir: o.dir, Program: program, Args: []string{sshProxy}})
	if err != nil {
		return err
	}
	switch {
	case o.json:
		return o.console.document(sshConfigDocument{result, hosts})
	case o.put && result.Changed:
		o.console.note("%s includes %s now", result.Config, result.File)
	case o.put:
		o.console.note("%s includes %s already", result.Config, result.File)
	case o.away && result.Changed:
		o.console.note("%s is as it was before", result.Config)
	case o.away:
		o.console.note("%s has no include of litterbox", result.Config)
	}
	if o.name != "" {
		return o.console.print("%s\n", hosts[0].Host)
	}
	if o.put || o.away {
		return nil
	}
	return o.console.print("%s", result.Block)
}

// found are the hosts that were asked for: one with a name, else all.
func (o *sshConfigOptions) found(ctx context.Context) ([]engine.DoorHost, error) {
	hosts, err := o.hosts(ctx)
	if err != nil || o.name == "" {
		return hosts, err
	}
	host, err := hostHere(ctx, o.exists, hosts, o.dir, o.name)
	return []engine.DoorHost{host}, err
}

// hostHere is the host that means the sandbox of that name in the repository
// that dir belongs to.
func hostHere(ctx context.Context, exists func(ctx context.Context, dir, name string) (bool, error), hosts []engine.DoorHost, dir, name string) (engine.DoorHost, error) {
	there, err := exists(ctx, dir, name)
	if err != nil {
		return engine.DoorHost{}, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	var best engine.DoorHost
	var names []string
	for _, host := range hosts {
		if real != host.Project && !strings.HasPrefix(real, host.Project+"/") {
			continue
		}
		names = append(names, host.Name)
		if host.Name == name && len(host.Project) > len(best.Project) {
			best = host
		}
	}
	if !there {
		return engine.DoorHost{}, engine.NoSandbox(name, names)
	}
	if best.Host == "" {
		return best, fault.New(fault.NotFound, "cannot name the host of sandbox %q from here", name).WithHint("cd to its checkout")
	}
	return best, nil
}
