package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// manyOptions are those of exec in several sandboxes.
type manyOptions struct {
	list listing
	log  func(ctx context.Context, info engine.Info, dir string, env []string) (*engine.CommandLog, error)

	chosen   selection
	parallel int
	output   string
}

// manyCaptured bounds each captured stream of one of several sandboxes.
const manyCaptured = 1 << 20

// failedMost is the largest number of failures that an exit code tells; one more
// stands for all above it.
const failedMost = 100

func (m *manyOptions) addFlags(cmd *cobra.Command) {
	allFlag(cmd, &m.chosen)
	cmd.Flags().IntVar(&m.parallel, "parallel", eachAtOnce, "with several sandboxes: work in `N` at a time")
	cmd.Flags().StringVar(&m.output, "output", "", "with several sandboxes: keep the logs in `DIR` as NAME.log")
}

// check refuses flags that mean nothing here.
func (m *manyOptions) check(cmd *cobra.Command, several, ask bool) error {
	switch {
	case m.parallel < 1:
		return usageError(cmd, "--parallel must be at least 1, not %d", m.parallel)
	case several && ask:
		return usageError(cmd, "--ask is for one sandbox")
	case !several && (m.output != "" || cmd.Flags().Changed("parallel")):
		return usageError(cmd, "--parallel and --output are for several sandboxes: --all or a pattern")
	}
	return nil
}

// manyDocument is one sandbox in the array of exec --all --json. Add fields,
// never rename them.
type manyDocument struct {
	execDocument
	Log     string `json:"log"`     // file with the whole output; empty when there is none
	Problem string `json:"problem"` // why litterbox failed; empty when it did not
}

// manyRow is the result of one sandbox.
type manyRow struct {
	name     string
	result   engine.ExecResult
	captured capture
	log      string
	err      error
}

func (r *manyRow) failed() bool { return r.err != nil || r.result.Exit.Code != 0 }

// runExecMany runs one command in several sandboxes, several at once.
func runExecMany(ctx context.Context, o *execOptions) error {
	infos, err := o.many.chosen.pick(ctx, o.many.list, o.dir)
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		return fault.New(fault.NotFound, "no sandboxes in this repository").WithHint("litterbox spawn 3")
	}
	if o.many.output != "" {
		if err := os.MkdirAll(o.many.output, 0o755); err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot keep logs in %q", o.many.output)
		}
		if o.many.output, err = filepath.Abs(o.many.output); err != nil {
			return fault.Wrap(fault.Invalid, err, "cannot keep logs in %q", o.many.output)
		}
	}
	ctx, herd, stop := o.console.herd(ctx)
	defer stop()
	rows := make([]*manyRow, len(infos))
	names := make([]string, len(infos))
	for n, info := range infos {
		names[n], rows[n] = info.Name, &manyRow{name: info.Name}
	}
	shown := &prefixes{console: o.console}
	// Each error is in its row.
	_ = forEach(context.WithoutCancel(ctx), names, o.many.parallel, func(_ context.Context, n int, _ string) error {
		row := rows[n]
		signals, leave := herd.join()
		if signals == nil {
			row.err = fault.New(fault.Canceled, "not begun")
			return nil
		}
		defer leave()
		row.err = o.one(ctx, infos[n], row, shown, signals, herd)
		if row.err != nil && !o.json {
			o.console.note("%s: %s", row.name, withHint(row.err))
		}
		return nil
	})
	stop() // before anything is printed
	return o.summary(rows)
}

// one runs the command in one of several sandboxes.
func (o *execOptions) one(ctx context.Context, info engine.Info, row *manyRow, shown *prefixes, signals <-chan string, herd *herd) (err error) {
	log, err := o.many.log(ctx, info, o.many.output, o.env.values)
	if err != nil {
		return err
	}
	row.log = log.Path
	defer func() { err = errors.Join(err, log.Close()) }()
	stdout, stderr := shown.stream(info.Name, o.console.stdout), shown.stream(info.Name, o.console.stderr)
	out, problems := []io.Writer{log.Stream(), stdout}, []io.Writer{log.Stream(), stderr}
	if o.json {
		row.captured.stdout.most, row.captured.stderr.most = manyCaptured, manyCaptured
		out[1], problems[1] = &row.captured.stdout, &row.captured.stderr
	}
	row.result, err = o.exec(ctx, engine.ExecRequest{
		Dir: o.dir, Name: info.Name, Argv: o.argv, Kind: o.kind, Message: o.message, Timeout: o.timeout, NoCommit: o.noCommit,
		Env: o.env.values, WorkDir: o.directory(), AllowDegraded: o.allowDegraded, Refusals: true,
		Streams: engine.Streams{
			Started: herd.begin, Stdin: strings.NewReader(""),
			Stdout: io.MultiWriter(out...), Stderr: io.MultiWriter(problems...), Signals: signals,
		},
	})
	err = errors.Join(err, stdout.flush(), stderr.flush())
	if err != nil {
		return o.lost(err)
	}
	return nil
}

// summary is a row for each sandbox, and the number of failures as exit code.
func (o *execOptions) summary(rows []*manyRow) error {
	table, documents, failed := [][]string{{"NAME", "EXIT", "DURATION", "COMMIT", "LOG"}}, []manyDocument{}, 0
	for _, row := range rows {
		if row.failed() {
			failed++
		}
		document := manyDocument{execDocument: row.captured.document(row.name, row.result), Log: row.log}
		exit, duration, commit := decimal(row.result.Exit.Code), row.result.Exit.Duration.Round(time.Millisecond).String(), "-"
		if row.result.Iteration != nil {
			commit = short(row.result.Iteration.Commit)
		}
		if row.err != nil {
			document.Problem, document.ExitCode = withHint(row.err), exitOwnFailure
			exit, duration = "failed", "-"
		}
		documents = append(documents, document)
		table = append(table, []string{row.name, exit, duration, commit, row.log})
		if !o.json {
			o.console.noteRefused(row.name, row.result.Refused)
			for _, note := range row.result.Notes {
				o.console.note("%s: %s", row.name, note)
			}
		}
	}
	var err error
	if o.json {
		err = o.console.document(documents)
	} else {
		err = o.console.table(table)
	}
	if err != nil {
		return err
	}
	return statusError(min(failed, failedMost+1))
}

// withHint words an error that is shown among others.
func withHint(err error) string {
	text := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		text += "; try: " + hint
	}
	return text
}

// herd passes signals on to several commands at once.
type herd struct {
	started atomic.Bool // one has been sent, and gets signals

	mu      sync.Mutex
	over    bool // an interrupt came: nothing more is begun
	members map[chan string]bool
}

// herd begins to catch the signals that a single command would get; see relay. The
// returned function ends that, and may be called twice.
func (c *console) herd(parent context.Context) (context.Context, *herd, func()) {
	ctx, cancel := context.WithCancel(parent)
	caught := make(chan os.Signal, 16)
	for s := range relayed() {
		catch(caught, s)
	}
	h := &herd{members: map[chan string]bool{}}
	r := &relay{out: make(chan string, 16), started: h.started.Load, cancel: cancel, now: c.now}
	go r.run(ctx, caught)
	go func() {
		for {
			select {
			case name := <-r.out:
				h.send(name)
			case <-ctx.Done():
				h.send("")
				return
			}
		}
	}()
	return ctx, h, func() {
		signal.Stop(caught)
		cancel()
	}
}

func (h *herd) begin() { h.started.Store(true) }

// send hands a signal to every member; an empty name only ends the beginning.
func (h *herd) send(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for member := range h.members {
		if name == "" {
			continue
		}
		select {
		case member <- name:
		default: // it does not listen; a full queue is enough
		}
	}
}

// join adds a command, and gives nil when nothing more is begun.
func (h *herd) join() (<-chan string, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, nil
	}
	member := make(chan string, 16)
	h.members[member] = true
	return member, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.members, member)
	}
}
