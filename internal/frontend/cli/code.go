package cli

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// editorCommand is how an editor is told to open a directory of a host of ssh.
func editorCommand(editor string, host engine.DoorHost) ([]string, bool) {
	switch editor {
	case "code", "cursor":
		return []string{editor, "--remote", "ssh-remote+" + host.Host, host.Project}, true
	case "zed":
		return []string{"zed", (&url.URL{Scheme: "ssh", Host: host.Host, Path: host.Project}).String()}, true
	case "jetbrains":
		wanted := url.Values{"type": {"ssh"}, "host": {host.Host}, "port": {"22"}, "user": {"litterbox"}, "projectPath": {host.Project}}
		return []string{"jetbrains-gateway", "jetbrains-gateway://connect#" + wanted.Encode()}, true
	}
	return nil, false
}

func newCode(s *session) *cobra.Command {
	editor := "code"
	cmd := &cobra.Command{
		Use:   "code NAME",
		Short: "Open a sandbox in your editor",
		Long: `Open the project of a sandbox in an editor on this machine, over ssh: after
litterbox ssh-config --install every sandbox is a host. The editor installs its
server in the sandbox; downloads from inside follow the network policy. Saved files
are committed when a session ends, and during it whenever they have been quiet for
a while.

With --editor browser it opens an editor that runs inside and is used in the
browser, such as code-server: a service that listens on the port "editor" of
container.ports. It stays until Ctrl-C and has committed what was saved.`,
		Example: `  litterbox code fix-login
  litterbox code fix-login --editor zed
  litterbox code fix-login --editor browser`,
		Args:              wantArgs(1, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if editor == inBrowser {
				open := &openOptions{console: s.console, open: e.OpenPort, browse: startBrowser, dir: dir, name: args[0], port: editorPort}
				return runBrowserEditor(ctx, open, e.AccompanyEditors)
			}
			hosts, err := e.DoorHosts(ctx)
			if err != nil {
				return err
			}
			host, err := hostHere(ctx, e.Exists, hosts, dir, args[0])
			if err != nil {
				return err
			}
			argv, ok := editorCommand(editor, host)
			if !ok {
				return fault.New(fault.Invalid, "cannot open sandbox %q in %q: the editors are code, cursor, zed, jetbrains and browser", args[0], editor).
					WithHint("litterbox code %s --editor code", args[0])
			}
			program, err := exec.LookPath(argv[0])
			if err != nil {
				return fault.New(fault.NotFound, "cannot open sandbox %q: there is no program %q on this machine", args[0], argv[0]).
					WithHint("litterbox code %s --editor zed, or ssh %s", args[0], host.Host)
			}
			if !isKnownToSSH(ctx, host.Host) {
				s.console.note("ssh on this machine does not know %s, which %s opens: litterbox ssh-config --install", host.Host, argv[0])
			}
			started := exec.CommandContext(ctx, program, argv[1:]...)
			started.Stdin, started.Stdout, started.Stderr, started.Env = os.Stdin, s.console.stdout, s.console.stderr, os.Environ()
			if err := started.Run(); err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot open sandbox %q with %s", args[0], argv[0]).WithHint("litterbox ssh-config --install")
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&editor, "editor", editor, "`EDITOR`: code, cursor, zed, jetbrains or browser")
	_ = cmd.RegisterFlagCompletionFunc("editor", cobra.FixedCompletions([]string{"code", "cursor", "zed", "jetbrains", inBrowser}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// isKnownToSSH reports whether ssh, which editors start, finds the way to a
// sandbox. An editor may have a configuration of its own; what cannot be asked
// counts as known.
func isKnownToSSH(ctx context.Context, host string) bool {
	settings, err := exec.CommandContext(ctx, "ssh", "-G", host).Output()
	return err != nil || strings.Contains(string(settings), "ssh-proxy")
}

const (
	// inBrowser is the editor that runs inside and is used in the browser.
	inBrowser = "browser"
	// editorPort is the port that it listens on.
	editorPort = "editor"
)

// runBrowserEditor opens the editor of a sandbox in the browser, and stays with
// it until it is interrupted.
func runBrowserEditor(ctx context.Context, o *openOptions, accompany func(context.Context, engine.Place, engine.Actor, func() bool)) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	if err := runOpen(ctx, o); err != nil {
		return err
	}
	o.console.note("saved files are committed when they have been quiet for a while; Ctrl-C ends this, not the editor")
	accompany(ctx, engine.Place{Dir: o.dir, Name: o.name}, engine.Actor{Via: "cli"}, func() bool { return true })
	return nil
}
