package cli

import (
	"bufio"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

type syncOptions struct {
	console *console
	sync    func(context.Context, engine.SyncRequest) (engine.SyncResult, *sandbox.Iteration, error)
	back    func(context.Context, engine.SyncBackRequest) (engine.SyncResult, error)

	dir, name string
	paths     []string
	exclude   []string
	dryRun    bool
	delete    bool
	yes       bool
	json      bool
	message   string
	interval  time.Duration
	quiet     bool
	lines     *bufio.Writer // to a stdout that is no terminal; nil until the first

	// watch-back --at-once looks at the files, and waits for a change of them.
	atOnce bool
	glance func(context.Context, engine.Place) (engine.Glance, error)
	await  func(ctx context.Context, place engine.Place, since engine.Glance, most time.Duration) error
}

// syncDocument is what sync --json and sync-back --json print.
type syncDocument struct {
	Name  string              `json:"name"`
	Files []engine.SyncedFile `json:"files"`
	Risks []engine.Risk       `json:"risks"` // files that can run code on this machine
	Yours []string            `json:"yours"` // files that hold uncommitted work of the human's
	Notes []string            `json:"notes"`
}

func newSync(s *session) *cobra.Command {
	o := &syncOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "sync NAME [PATH...]",
		Short: "Copy files of your checkout into a sandbox",
		Long: `Copy files of your checkout, committed or not, into an existing sandbox, and commit
them there as one step. Without PATH it copies every file that differs; PATH is
relative to the current directory. The sandbox's versions are replaced, and stay in
its history.

Files that git or a .litterboxignore at the top ignores, and untracked hidden files,
are copied only if PATH names them. --dry-run prints exactly what would be copied
and deleted. It copies once; sandboxes do not follow your checkout.`,
		Example: `  litterbox sync fix-login
  litterbox sync fix-login --delete --exclude '*.log' src
  litterbox sync fix-login .env.example --dry-run`,
		Args:              wantArgs(1, -1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if err := o.take(e, dir, args); err != nil {
				return err
			}
			o.sync = e.Sync
			return runSync(ctx, o)
		}),
	}
	o.addFlags(cmd, "delete in the sandbox what your checkout does not have")
	messageFlag(cmd.Flags(), &o.message, "`MESSAGE`: first line of the commit")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as one JSON object")
	return cmd
}

func newSyncBack(s *session) *cobra.Command {
	o := &syncOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "sync-back NAME [PATH...]",
		Short: "Copy what a sandbox changed into your checkout, without a merge",
		Long: `Copy files that a sandbox has changed since its base, as they are now, into your
checkout. This is the one exception to "only by a merge": index, branches and the
sandbox stay as they are, and git diff shows you the changes.

Files that could run code on this machine are listed first, as in merge, and so
are files with changes of yours that are not the sandbox's; you are asked, and
without a terminal, --yes is needed. Nothing is written through a link,
over a directory or into .git. --delete also deletes files that the sandbox has
deleted. --dry-run prints exactly what would be written and deleted.`,
		Example: `  litterbox sync-back fix-login
  litterbox sync-back fix-login docs --exclude '*.tmp' --dry-run`,
		Args:              wantArgs(1, -1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if err := o.take(e, dir, args); err != nil {
				return err
			}
			o.back = e.SyncBack
			return runSyncBack(ctx, o)
		}),
	}
	o.addFlags(cmd, "delete in your checkout what the sandbox has deleted")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "write without asking")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as one JSON object")
	return cmd
}

func newWatchBack(s *session) *cobra.Command {
	o := &syncOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "watch-back NAME [PATH...]",
		Short: "Keep copying what a sandbox changes into your checkout",
		Long: `Repeat sync-back until interrupted, with one line for each file and its time. It
never asks. It lists the files that sync-back would ask about (files that could run
code on this machine and files with changes of yours) once, and leaves them to
sync-back.

It looks every 30 seconds, or as often as --interval says. With --at-once it also
copies a file as soon as it has been written, while the command inside goes on. Of
a sandbox on another machine it asks for a listing each time, a second apart or more.`,
		Example: `  litterbox watch-back fix-login src
  litterbox watch-back fix-login --at-once
  litterbox watch-back fix-login -i 5s -q`,
		Args:              wantArgs(1, -1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			if o.interval <= 0 {
				return fault.New(fault.Invalid, "--interval %s is too short", o.interval).WithHint("litterbox watch-back --help")
			}
			if err := o.take(e, dir, args); err != nil {
				return err
			}
			o.back, o.glance, o.await = e.SyncBack, e.Glance, e.AwaitChange
			return runWatchBack(ctx, o)
		}),
	}
	o.addFlags(cmd, "delete in your checkout what the sandbox has deleted")
	cmd.Flags().BoolVar(&o.atOnce, "at-once", false, "also copy as soon as files change inside")
	cmd.Flags().DurationVarP(&o.interval, "interval", "i", 30*time.Second, "look every `D`, such as 5s")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print nothing when nothing changed")
	cmd.Flags().Lookup("dry-run").Hidden = true
	return cmd
}

func (o *syncOptions) addFlags(cmd *cobra.Command, deletes string) {
	f := cmd.Flags()
	f.StringArrayVar(&o.exclude, "exclude", nil, "leave out what matches `PATTERN`, as rsync reads it, such as node_modules/")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "print what would be done, and change nothing")
	f.BoolVar(&o.delete, "delete", false, deletes)
}

// take reads the arguments: paths are relative to where the user stands.
func (o *syncOptions) take(e useCases, dir string, args []string) error {
	o.dir, o.name = dir, args[0]
	here := e.Within(dir)
	for _, name := range args[1:] {
		at := path.Join(here, filepath.ToSlash(name))
		if filepath.IsAbs(name) || at == ".." || strings.HasPrefix(at, "../") {
			return fault.New(fault.Invalid, "cannot sync %q: it is outside of the checkout", name)
		}
		o.paths = append(o.paths, at)
	}
	for _, pattern := range o.exclude {
		if _, err := path.Match(strings.TrimSuffix(pattern, "/"), "x"); err != nil {
			return fault.New(fault.Invalid, "cannot read the pattern %q", pattern)
		}
	}
	return nil
}

// each prints a file; dry runs and real ones print the same. On a terminal a line is
// there before its file; elsewhere many lines are written at once, and the caller
// flushes the rest.
func (o *syncOptions) each(file engine.SyncedFile) {
	if _, tty := terminal(o.console.stdout); tty {
		_ = o.console.print("%-6s %s\n", file.Action, clean(file.Path))
		return
	}
	if o.lines == nil {
		o.lines = bufio.NewWriterSize(o.console.stdout, 32<<10)
	}
	o.console.progress.clear()
	fmt.Fprintf(o.lines, "%-6s %s\n", file.Action, clean(file.Path))
}

// flush writes the lines that wait. As for all lines, a reader that is gone is no
// error.
func (o *syncOptions) flush() {
	if o.lines != nil {
		_ = o.lines.Flush()
	}
}

func (o *syncOptions) show(result engine.SyncResult, real bool) error {
	if o.json {
		return o.console.document(syncDocument{o.name, list(result.Files), list(result.Risks), list(result.Yours), list(result.Notes)})
	}
	if !real {
		for _, file := range result.Files {
			o.each(file)
		}
		o.flush()
	}
	o.console.notes(result.Notes)
	if len(result.Files) == 0 {
		o.console.note("nothing differs")
	}
	return nil
}

func runSync(ctx context.Context, o *syncOptions) error {
	r := engine.SyncRequest{Place: engine.Place{Dir: o.dir, Name: o.name}, Paths: o.paths, Exclude: o.exclude, Delete: o.delete, DryRun: o.dryRun, Message: o.message}
	if !o.json {
		r.Each = o.each
	}
	result, made, err := o.sync(ctx, r)
	o.flush()
	if err != nil {
		return err
	}
	if err := o.show(result, !o.dryRun); err != nil || o.json {
		return err
	}
	return o.console.committed(o.name, made)
}

func runSyncBack(ctx context.Context, o *syncOptions) error {
	r := engine.SyncBackRequest{
		Place: engine.Place{Dir: o.dir, Name: o.name}, Paths: o.paths, Exclude: o.exclude, Delete: o.delete, DryRun: o.dryRun, Yes: o.yes,
	}
	if !o.json {
		r.Each = o.each
	}
	if o.console.canAsk() {
		r.Confirm = func(risky []engine.Risk, yours []string) (bool, error) { return o.confirm(ctx, risky, yours) }
	}
	result, err := o.back(ctx, r)
	o.flush()
	if err != nil {
		if fault.KindOf(err) == fault.Denied {
			o.nameAll(result)
		}
		return err
	}
	if o.dryRun && !o.json {
		o.nameAll(result)
	}
	return o.show(result, !o.dryRun)
}

// nameAll names the files that a question is about.
func (o *syncOptions) nameAll(result engine.SyncResult) {
	for _, line := range o.questions(result.Risks, result.Yours) {
		fmt.Fprintln(o.console.stderr, line)
	}
}

func (o *syncOptions) questions(risky []engine.Risk, yours []string) []string {
	var lines []string
	if len(risky) > 0 {
		lines = append(append(lines, clean(o.name)+" changes files that could run code on this machine:"), riskLines(risky)...)
	}
	if len(yours) > 0 {
		lines = append(lines, "your checkout has changes of its own in:")
		for _, name := range yours {
			lines = append(lines, "  "+clean(name))
		}
	}
	return lines
}

func (o *syncOptions) confirm(ctx context.Context, risky []engine.Risk, yours []string) (bool, error) {
	o.console.progress.clear()
	o.nameAll(engine.SyncResult{Risks: risky, Yours: yours})
	return o.console.ask(ctx, "Write them?")
}

// runWatchBack goes on until it is interrupted, also past temporary errors: the
// sandbox is stopped, or being written to.
func runWatchBack(ctx context.Context, o *syncOptions) error {
	w := backWatch{syncOptions: o, said: map[string]bool{}, place: engine.Place{Dir: o.dir, Name: o.name}}
	for first := true; ; first = false {
		since, err := w.look(ctx)
		changed := false
		if err == nil {
			changed, err = w.copy(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := w.endure(err); err != nil {
			return err
		}
		// At once, most looks find nothing to copy.
		if !changed && err == nil && !o.quiet && (first || !o.atOnce) {
			if err := o.console.print("%s nothing changed\n", w.stamp()); err != nil {
				return err
			}
		}
		if o.atOnce && err == nil {
			if err := w.endure(o.await(ctx, w.place, since, o.interval)); err != nil {
				return err
			}
			continue
		}
		pause := o.interval
		if o.atOnce {
			pause = min(pause, retryPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// retryPause is how long watch-back --at-once waits after a temporary error.
const retryPause = 2 * time.Second

// backWatch is one watch-back.
type backWatch struct {
	*syncOptions
	place  engine.Place
	said   map[string]bool // notes, each of which is printed once
	failed string          // the temporary error of the last round
}

func (w *backWatch) stamp() string { return w.console.now().Format(time.TimeOnly) }

// look is needed only where a change is waited for.
func (w *backWatch) look(ctx context.Context) (engine.Glance, error) {
	if !w.atOnce {
		return engine.Glance{}, nil
	}
	return w.glance(ctx, w.place)
}

// copy copies once, and reports whether there was anything to copy.
func (w *backWatch) copy(ctx context.Context) (changed bool, err error) {
	result, err := w.back(ctx, engine.SyncBackRequest{
		Place: w.place, Paths: w.paths, Exclude: w.exclude, Delete: w.delete, Careful: true,
		Each: func(file engine.SyncedFile) {
			changed = true
			_ = w.console.print("%s %-6s %s\n", w.stamp(), file.Action, clean(file.Path))
		},
	})
	for _, name := range result.Kept {
		w.once(name + " is left to litterbox sync-back " + w.name + ", which asks")
	}
	for _, note := range result.Notes {
		w.once(note)
	}
	return changed, err
}

func (w *backWatch) once(note string) {
	if !w.said[note] {
		w.said[note] = true
		w.console.note("%s", note)
	}
}

// endure prints a temporary error, unless it was the last one too, and returns any
// other.
func (w *backWatch) endure(err error) error {
	kind := fault.KindOf(err)
	if kind != "" && kind != fault.Unavailable && kind != fault.Timeout {
		return err
	}
	if err != nil && err.Error() != w.failed {
		w.console.note("%s", err.Error())
	}
	w.failed = ""
	if err != nil {
		w.failed = err.Error()
	}
	return nil
}
