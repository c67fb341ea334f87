package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// taskRow is one task of many, and what came of it.
type taskRow struct {
	prompt string
	run    engine.Run
	err    error
	left   bool
}

// runAgentTasks runs a task from each line, so many at once, each in a sandbox
// of its own. One that fails takes no other with it.
func runAgentTasks(ctx context.Context, o *agentRunOptions) error {
	content, err := o.console.readAll(o.tasks)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "cannot read the tasks of %q", o.tasks)
	}
	var rows []*taskRow
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, maxEnvironmentFile)
	for scanner.Scan() {
		if line := strings.TrimSpace(scanner.Text()); line != "" && line[0] != '#' {
			rows = append(rows, &taskRow{prompt: line})
		}
	}
	if err := scanner.Err(); err != nil {
		return fault.Wrap(fault.Invalid, err, "cannot read the tasks of %q", o.tasks)
	}
	if len(rows) == 0 {
		return fault.New(fault.Invalid, "cannot run an agent: %q holds no task", o.tasks)
	}
	if err := o.askPackages(ctx); err != nil {
		return err
	}
	o.locked = !o.task.Packages // it was asked
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
	if err != nil {
		o.console.note("%s", err)
		return
	}
	show := newTranscript(o.console, run, "["+run.Sandbox+"] ", o.json)
	if !o.json {
		_ = show.print("", run.Title+" begins: "+firstOf(row.prompt)) // the end says what cannot be shown
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

// summary is a row for each task. The exit code is 0 when all are completed.
func (o *agentRunOptions) summary(rows []*taskRow) error {
	table := [][]string{{"SANDBOX", "OUTCOME", "DURATION", "COMMITS", "FILES", "TOKENS", "TASK"}}
	failed := false
	for _, row := range rows {
		run := row.run
		switch {
		case row.err != nil:
			failed = true
			table = append(table, []string{first(run.Sandbox, "-"), row.err.Error(), "-", "-", "-", "-", firstOf(row.prompt)})
			continue
		case row.left:
			table = append(table, []string{run.Sandbox, "works on", "-", "-", "-", "-", firstOf(row.prompt)})
			continue
		}
		failed = failed || run.State != sandbox.RunCompleted
		if o.json {
			if err := o.console.jsonLine(startedDocument{"ended", run}); err != nil {
				return err
			}
			continue
		}
		table = append(table, []string{
			run.Sandbox, outcomeText(run), took(run.EndedAt.Sub(run.StartedAt)), fmt.Sprint(run.Commits), fmt.Sprint(run.Files),
			fmt.Sprint(run.TokensIn + run.TokensRead + run.TokensOut), firstOf(row.prompt),
		})
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
