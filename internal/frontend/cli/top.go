package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type topOptions struct {
	console *console
	samples func(ctx context.Context, dir string, all, disk bool) ([]engine.Sample, error)

	dir      string
	all      bool
	interval time.Duration
	once     bool
}

func newTop(s *session) *cobra.Command {
	o := &topOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "top [--all]",
		Short: "Watch what running sandboxes use",
		Long: `Watch what the running sandboxes of this repository use, the busiest first, until
q or Ctrl-C. If standard output is not a terminal, each update is printed below the
previous one.`,
		Example: `  litterbox top
  litterbox top --all --once`,
		Args:              wantArgs(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: s.action(func(ctx context.Context, e useCases, dir string, _ []string) error {
			o.samples, o.dir = e.Samples, dir
			return runTop(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "include all repositories")
	cmd.Flags().DurationVarP(&o.interval, "interval", "i", 2*time.Second, "look every `TIME`")
	cmd.Flags().BoolVar(&o.once, "once", false, "look once")
	return cmd
}

// Sequences of ECMA-48 and xterm for a screen of its own.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // alternate screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	homeScreen  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

func runTop(ctx context.Context, o *topOptions) error {
	if o.interval < 100*time.Millisecond {
		return fault.New(fault.Invalid, "--interval %v is too short", o.interval).WithHint("litterbox top --interval 1s")
	}
	out, live := terminal(o.console.stdout)
	live = live && !o.once
	if live {
		if err := o.console.print("%s", enterScreen); err != nil {
			return err
		}
		defer func() { _ = o.console.print("%s", leaveScreen) }() // the terminal has hung up
	}
	var look keys
	if live {
		look = o.console.watchKeys(ctx)
		defer look.stop()
	}
	ticker := time.NewTicker(o.interval)
	defer ticker.Stop()
	var before topView
	for {
		samples, err := o.samples(ctx, o.dir, o.all, false)
		if ctx.Err() != nil {
			return nil // Ctrl-C is how this ends
		}
		if err != nil {
			return err
		}
		now := viewOf(samples, o.console.now())
		text := now.text(before)
		if live {
			width, height, err := term.GetSize(int(out.Fd()))
			if err != nil {
				width, height = 80, 24
			}
			text = screenful(text, width, height)
		}
		if err := o.console.print("%s", text); err != nil || o.once {
			return err
		}
		for drawn := true; drawn; {
			select {
			case <-ctx.Done():
				return nil
			case <-look.quit:
				return nil
			case <-look.resized: // the last measurement, drawn again
				width, height, err := term.GetSize(int(out.Fd()))
				if err == nil {
					err = o.console.print("%s", screenful(now.text(before), width, height))
				}
				if err != nil {
					return err
				}
			case <-ticker.C:
				drawn = false
			}
		}
		before = now
	}
}

// topView is one look.
type topView struct {
	at      time.Time
	samples []engine.Sample
	cpu     map[string]time.Duration // by sandbox id
}

func viewOf(samples []engine.Sample, at time.Time) topView {
	view := topView{at: at, cpu: map[string]time.Duration{}}
	for _, s := range samples {
		if s.State == sandbox.Running || s.State == sandbox.Paused {
			view.samples = append(view.samples, s)
		}
		if s.Resources != nil && s.Resources.CPU >= 0 {
			view.cpu[s.ID] = s.Resources.CPU
		}
	}
	return view
}

// load is the share of one processor since the previous look, in percent; -1 when
// there is nothing to compare with.
func (v topView) load(before topView, id string) float64 {
	used, known := before.cpu[id]
	now, measured := v.cpu[id]
	if passed := v.at.Sub(before.at); known && measured && passed > 0 {
		return max(0, 100*float64(now-used)/float64(passed))
	}
	return -1
}

func (v topView) text(before topView) string {
	sorted := slices.Clone(v.samples)
	slices.SortStableFunc(sorted, func(a, b engine.Sample) int {
		return cmp.Compare(v.load(before, b.ID), v.load(before, a.ID))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %d running\n%-20s %-8s %6s %10s %6s %12s %12s %8s %8s  %-12s  %s\n", v.at.Format(time.TimeOnly), len(sorted),
		"NAME", "STATE", "CPU", "MEMORY", "PROCS", "NET IN", "NET OUT", "REFUSED", "COST", "SESSIONS", "REPOSITORY")
	for _, s := range sorted {
		load, memory, processes := "-", "-", "-"
		if percent := v.load(before, s.ID); percent >= 0 {
			load = fmt.Sprintf("%.0f%%", percent)
		}
		if s.Resources != nil && s.Resources.Memory >= 0 {
			memory = amount(s.Resources.Memory)
		}
		if s.Resources != nil && s.Resources.Processes >= 0 {
			processes = decimal(s.Resources.Processes)
		}
		fmt.Fprintf(&b, "%-20.20s %-8s %6s %10s %6s %12s %12s %8d %8s  %-12s  %s\n", clean(s.Name), s.State, load, memory, processes,
			amount(s.Traffic.In), amount(s.Traffic.Out), s.Traffic.Refused, costText(s.Cost), sessionKinds(s.Sessions), clean(s.Repository))
	}
	return b.String()
}

// screenful cuts text to a screen and overwrites the text before.
func screenful(text string, width, height int) string {
	var b strings.Builder
	b.WriteString(homeScreen)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines[:min(len(lines), height-1)] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width])
		}
		b.WriteString(line + clearLine)
	}
	return b.String() + clearBelow
}
