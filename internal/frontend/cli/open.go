package cli

import (
	"context"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type openOptions struct {
	console *console
	open    func(ctx context.Context, dir, name, port string) (engine.Port, []string, error)
	browse  func(argv []string) error // starts a browser

	dir, name, port string
	print           bool
}

func newOpen(s *session) *cobra.Command {
	o := &openOptions{console: s.console, browse: startBrowser}
	cmd := &cobra.Command{
		Use:   "open NAME [PORT]",
		Short: "Open a port of a sandbox in the browser",
		Long: `Open a forwarded port in the browser: $BROWSER, or the desktop's default. Without a
browser the URL is printed. PORT is a name from container.ports; leave it out when
there is only one. A stopped sandbox is started.`,
		Example: `  litterbox open fix-login web
  litterbox open fix-login --print`,
		Args:              wantArgs(1, 2),
		ValidArgsFunction: s.thenComplete(completePort),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.open, o.dir, o.name = e.OpenPort, dir, args[0]
			if len(args) == 2 {
				o.port = args[1]
			}
			return runOpen(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.print, "print", false, "only print the URL")
	return cmd
}

func runOpen(ctx context.Context, o *openOptions) error {
	port, notes, err := o.open(ctx, o.dir, o.name, o.port)
	if err != nil {
		return err
	}
	o.console.notes(notes)
	if !o.print {
		for _, browser := range browsers(runtime.GOOS, o.console.env) {
			if o.browse(append(browser, port.URL)) == nil {
				o.console.note("opened %s", port.URL)
				return nil
			}
		}
	}
	return o.console.print("%s\n", port.URL)
}

// browsers lists the commands to try, in order. $BROWSER holds several with
// colons between them, each with arguments.
func browsers(system string, env func(string) string) [][]string {
	var commands [][]string
	for command := range strings.SplitSeq(env("BROWSER"), ":") {
		words := strings.Fields(strings.ReplaceAll(command, "%s", ""))
		if len(words) > 0 {
			commands = append(commands, words)
		}
	}
	switch {
	case len(commands) > 0:
	case system == "darwin":
		commands = [][]string{{"open"}}
	case env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != "":
		commands = [][]string{{"xdg-open"}}
	}
	return commands
}

// startBrowser starts a command and does not wait for it: a browser may stay.
func startBrowser(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}
