package cli

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// transcript prints what an agent says and does, in lines.
type transcript struct {
	console *console
	run     engine.Run
	lead    string // before each line
	json    bool
}

func newTranscript(c *console, run engine.Run, lead string, json bool) *transcript {
	return &transcript{console: c, run: run, lead: lead, json: json}
}

// outputLine bounds how much of a failed command's output is shown.
const outputLine = 200

func (t *transcript) line(line engine.RunLine) error {
	if t.json {
		return t.console.jsonLine(struct {
			Sandbox string `json:"sandbox"`
			engine.RunLine
		}{t.run.Sandbox, line})
	}
	switch line.Kind {
	case "text":
		return t.print("", line.Text)
	case "command":
		return t.print("  $ ", firstOf(line.Text))
	case "edit":
		path := line.Path
		if below, err := filepath.Rel(t.run.Repository, path); err == nil && !strings.HasPrefix(below, "..") {
			path = below
		}
		return t.print("  edit ", path)
	case "tool":
		return t.print("  ", strings.TrimSpace(line.Tool+" "+firstOf(line.Text)))
	case "output":
		if line.Failed {
			return t.print("  ! ", firstOf(line.Text))
		}
	case "warning":
		return t.print("  note: ", firstOf(line.Text))
	case "line":
		return t.print("  | ", line.Text)
	}
	return nil
}

// print prints a text; text that an agent chose passes through clean.
func (t *transcript) print(lead, text string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" {
			continue
		}
		if err := t.console.print("%s%s%s\n", t.lead, lead, clean(line)); err != nil {
			return err
		}
		lead = strings.Repeat(" ", len(lead))
	}
	return nil
}

// firstOf is the first line of a text, cut.
func firstOf(text string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > outputLine {
		return string(runes[:outputLine]) + "…"
	}
	if rest != "" {
		line += " …"
	}
	return line
}

// follow shows a headless run until it ends (ended is true) or the user leaves
// it to itself. An interrupt asks on a terminal, and ends it elsewhere.
func (o *agentRunOptions) follow(ctx context.Context, run engine.Run, lead string) (_ engine.Run, ended bool, err error) {
	// Before anything is shown: a user who reads that it works may interrupt it.
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	followed := run
	defer o.onInterrupt(ctx, leave, func() error { return o.e.StopAgent(followed) })()
	if o.json {
		if err := o.console.jsonLine(startedDocument{"started", run}); err != nil {
			return run, false, err
		}
	} else if err := o.console.print("%s%s works in %s\n", lead, run.Title, run.Sandbox); err != nil {
		return run, false, err
	}
	run, err = o.e.FollowAgent(ctx, run, true, newTranscript(o.console, run, lead, o.json).line)
	return run, run.State.Over(), err
}

// onInterrupt has a human decide what an interrupt means: to end the agent, or
// to leave it at work, which a second interrupt does, too. Without a terminal it
// ends the agent; a terminal that has hung up leaves it.
func (o *agentRunOptions) onInterrupt(ctx context.Context, leave func(), stop func() error) (done func()) {
	caught := make(chan os.Signal, 4)
	catch(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for {
			var s os.Signal
			select {
			case <-ctx.Done():
				return
			case s = <-caught:
			}
			if s == syscall.SIGHUP {
				leave()
				return
			}
			if s == syscall.SIGINT && o.console.canAsk() {
				answer, err := o.console.answer(ctx, "End the agent, or leave it at work? [e]nd, [l]eave, anything else continues:")
				// Interrupting the question is not an answer, and an agent that is left
				// alone loses no work.
				if err != nil || strings.HasPrefix(answer, "l") {
					leave()
					return
				}
				if !strings.HasPrefix(answer, "e") {
					continue
				}
			}
			if err := stop(); err != nil {
				o.console.note("%s", err)
			}
		}
	}()
	return func() { signal.Stop(caught) }
}
