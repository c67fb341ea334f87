package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// taskRow is one task of many, and its result.
type taskRow struct {
	prompt string
	run    engine.Run
	err    error
	left   bool
}

// runAgentTasks runs a task from each line, several at once, each in a sandbox of
// its own. A failure stops no other.
func runAgentTasks(ctx context.Context, o *agentRunOptions) error {
	rows, err := o.readTasks()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "cannot read the tasks of %q", o.tasks)
	}
	if len(rows) == 0 {
		return fault.New(fault.Invalid, "cannot run an agent: %q holds no task", o.tasks)
	}
	if err := o.check(ctx); err != nil {
		return err
	}
	if err := o.askPackages(ctx); err != nil {
		return err
	}
	o.locked = !o.task.Packages // it was asked
	if err := o.chooseMachines(ctx); err != nil {
		return err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var mu sync.Mutex // guards rows, and making sandboxes: each gets a name of its own
	over := false
	stop := func() error {
		mu.Lock()
		defer mu.Unlock()
		over = true
		var problems []error
		for _, row := range rows {
			if row.run.Number > 0 && !row.run.State.Over() {
				problems = append(problems, o.e.StopAgent(row.run))
			}
		}
		return errors.Join(problems...)
	}
	defer o.onInterrupt(ctx, leave, stop)()
	slots := make(chan struct{}, o.parallel)
	var working sync.WaitGroup
	for _, row := range rows {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		mu.Lock()
		ended := over || ctx.Err() != nil
		mu.Unlock()
		if ended {
			row.err = fault.New(fault.Canceled, "not begun")
			continue
		}
		working.Go(func() {
			defer func() { <-slots }()
			o.one(ctx, &mu, row)
		})
	}
	working.Wait()
	return o.summary(rows)
}

// readTasks reads a task from each line of a file, or from each file of a
// directory, in the order of their names; hidden files are left out.
func (o *agentRunOptions) readTasks() (rows []*taskRow, err error) {
	if info, err := os.Stat(o.tasks); err == nil && info.IsDir() {
		entries, err := os.ReadDir(o.tasks)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			path := filepath.Join(o.tasks, entry.Name())
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || strings.HasPrefix(entry.Name(), ".") {
				continue
			}
			content, err := o.console.readAll(path)
			if err != nil {
				return nil, err
			}
			if prompt := strings.TrimSpace(string(content)); prompt != "" {
				rows = append(rows, &taskRow{prompt: prompt})
			}
		}
		return rows, nil
	}
	content, err := o.console.readAll(o.tasks)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			rows = append(rows, &taskRow{prompt: line})
		}
	}
	return rows, nil
}

// one runs one task of many.
func (o *agentRunOptions) one(ctx context.Context, mu *sync.Mutex, row *taskRow) {
	mu.Lock()
	each := *o
	each.prompt, each.fresh = row.prompt, true
	name, err := each.place(ctx)
	var run engine.Run
	if err == nil {
		run, err = each.begin(ctx, name, row.prompt)
	}
	row.run, row.err = run, err
	mu.Unlock()
	defer o.placing.Give(each.taken)
	if err != nil {
		o.console.note("%s", err)
		return
	}
	show := newTranscript(o.console, run, "["+run.Sandbox+"] ", o.json)
	if o.json {
		_ = o.console.jsonLine(startedDocument{"started", run}) // likewise
	} else {
		_ = show.print("", run.Title+" begins: "+firstOf(row.prompt)) // the end reports a failure to show it
	}
	ended, err := o.e.FollowAgent(ctx, run, true, func(line engine.RunLine) error {
		mu.Lock()
		defer mu.Unlock()
		return show.line(line)
	})
	mu.Lock()
	defer mu.Unlock()
	row.run, row.err, row.left = ended, err, !ended.State.Over()
}

// summary is a row for each task. The exit code is 0 when all are completed, or
// left at work.
func (o *agentRunOptions) summary(rows []*taskRow) error {
	table := [][]string{{"SANDBOX", "OUTCOME", "DURATION", "COMMITS", "FILES", "TOKENS", "COST", "TASK"}}
	failed := false
	for _, row := range rows {
		run, kind := row.run, "ended"
		cells := []string{"-", "-", "-", "-", "-"}
		outcome := ""
		switch {
		case row.err != nil:
			failed = true
			outcome = row.err.Error()
			run.Prompt, run.Problem = row.prompt, outcome
			if run.Number == 0 { // it has not begun
				run.State = sandbox.RunFailed
			}
		case row.left:
			kind, outcome = "left", "works on"
		default:
			failed = failed || run.State != sandbox.RunCompleted
			outcome = outcomeText(run)
			in, cached, out := tokensOf(run)
			cells = []string{
				took(run.EndedAt.Sub(run.StartedAt)), fmt.Sprint(run.Commits), fmt.Sprint(run.Files),
				fmt.Sprint(in + cached + out), costCell(run),
			}
		}
		if o.json {
			if err := o.console.jsonLine(startedDocument{kind, run}); err != nil {
				return err
			}
			continue
		}
		table = append(table, slices.Concat([]string{first(run.Sandbox, "-"), firstOf(outcome)}, cells, []string{firstOf(row.prompt)}))
	}
	if !o.json {
		if err := o.console.table(table); err != nil {
			return err
		}
	}
	if failed {
		return statusError(1)
	}
	return nil
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
