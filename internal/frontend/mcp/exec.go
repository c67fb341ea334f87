package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

const (
	outputDefault  = 8_000 // bytes of output in one answer
	timeoutDefault = 10 * time.Minute
	timeoutMost    = 24 * time.Hour
)

type execArguments struct {
	Command string  `json:"command" jsonschema:"a shell command"`
	Message string  `json:"message" jsonschema:"what and why, in one line: the commit's message"`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"seconds until it is ended; default 600"`
	Dir     string  `json:"dir,omitempty" jsonschema:"default the project"`
	Limit   int     `json:"limit,omitempty" jsonschema:"most bytes; default 8000, at most 100000"`
}

func (a execArguments) check() error {
	switch {
	case a.Timeout < 0 || a.Timeout > timeoutMost.Seconds():
		return fmt.Errorf("timeout is %v and must be between 0 and %v seconds", a.Timeout, timeoutMost.Seconds())
	case a.Limit < 0 || a.Limit > outputMost:
		return fmt.Errorf("limit is %d and must be between 1 and %d", a.Limit, outputMost)
	case strings.ContainsRune(a.Command, 0):
		return fmt.Errorf("command holds a NUL byte")
	}
	return errors.Join(
		filled("command", a.Command, "say what to run"), shortEnough("command", a.Command, commandMost),
		shortEnough("dir", a.Dir, pathMost), message(a.Message),
	)
}

func (a execArguments) logged() map[string]any {
	return map[string]any{"command": a.Command, "message": a.Message, "dir": a.Dir, "timeout": a.Timeout}
}

type waitArguments struct {
	Command int  `json:"command" jsonschema:"its number, from sandbox-exec"`
	Stop    bool `json:"stop,omitempty" jsonschema:"end it, with all it started"`
	Limit   int  `json:"limit,omitempty" jsonschema:"most bytes; default 8000, at most 100000"`
}

func (a waitArguments) check() error {
	return execArguments{Command: "x", Message: "x", Limit: a.Limit}.check()
}
func (a waitArguments) logged() map[string]any {
	return map[string]any{"command": a.Command, "stop": a.Stop}
}

type denial struct {
	Destination string `json:"destination" jsonschema:"host:port; the host alone for a look-up of its name"`
	Why         string `json:"why"`
	Allow       string `json:"allow" jsonschema:"what a human types to allow it; empty when no rule does"`
	Preset      string `json:"preset,omitempty" jsonschema:"what to allow in place of the host for all of that package manager's hosts"`
}

type background struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

type execResult struct {
	Running     bool         `json:"running" jsonschema:"not over yet: call sandbox-wait with command"`
	Command     int          `json:"command,omitempty" jsonschema:"number for sandbox-wait"`
	ExitCode    int          `json:"exit_code" jsonschema:"-1 while it runs; 124 after a timeout; 128+n when signal n ended it"`
	Signal      string       `json:"signal,omitempty"`
	TimedOut    bool         `json:"timed_out,omitempty"`
	Seconds     float64      `json:"seconds"`
	Stdout      string       `json:"stdout" jsonschema:"since the last answer; the middle is left out when it is long"`
	Stderr      string       `json:"stderr"`
	StdoutBytes int64        `json:"stdout_bytes"`
	StderrBytes int64        `json:"stderr_bytes"`
	WholeOutput string       `json:"whole_output,omitempty" jsonschema:"file inside that has all of it, for sandbox-read"`
	WholeNote   string       `json:"whole_note,omitempty"`
	Step        int          `json:"step,omitempty" jsonschema:"number of the step that it became"`
	Commit      string       `json:"commit,omitempty" jsonschema:"on the branch outside; git inside does not have it"`
	Changed     int          `json:"changed" jsonschema:"files that the commit changed"`
	Files       []string     `json:"files" jsonschema:"the first of them"`
	Background  []background `json:"background" jsonschema:"processes it left running"`
	Output      string       `json:"background_output,omitempty" jsonschema:"file inside that takes their further output"`
	Denied      []denial     `json:"denied" jsonschema:"network destinations that were refused meanwhile"`
	Notes       []string     `json:"notes"`
}

func (r execResult) text() string {
	var b strings.Builder
	switch {
	case r.Running:
		fmt.Fprintf(&b, "still running after %.0f s: sandbox-wait with command %d (stop ends it)\n", r.Seconds, r.Command)
	default:
		fmt.Fprintf(&b, "exit %d", r.ExitCode)
		if r.Seconds >= 1 {
			fmt.Fprintf(&b, " in %.0f s", r.Seconds)
		}
		switch {
		case r.TimedOut:
			b.WriteString(", ended by its timeout")
		case r.Signal != "":
			fmt.Fprintf(&b, ", ended by SIG%s", r.Signal)
		case r.ExitCode == pipeClosed:
			b.WriteString(" (SIGPIPE: a later program of the pipe read no further; usually no failure)")
		}
		if r.Changed > 0 {
			fmt.Fprintf(&b, "; step %d: %s", r.Step, several(r.Files, r.Changed))
		}
		b.WriteByte('\n')
	}
	show(&b, r.Stdout, "")
	show(&b, r.Stderr, "--- stderr\n")
	if r.WholeOutput != "" {
		fmt.Fprintf(&b, "whole output: %s", r.WholeOutput)
		if r.WholeNote != "" {
			fmt.Fprintf(&b, " (%s)", r.WholeNote)
		}
		b.WriteByte('\n')
	}
	for _, d := range r.Denied {
		fmt.Fprintf(&b, "denied: %s (%s)", d.Destination, d.Why)
		if d.Allow != "" {
			fmt.Fprintf(&b, "; a human allows it with: %s", d.Allow)
		}
		if d.Preset != "" {
			fmt.Fprintf(&b, " (or %s, for all of its hosts)", d.Preset)
		}
		b.WriteByte('\n')
	}
	for _, p := range r.Background {
		fmt.Fprintf(&b, "left running: process %d: %s\n", p.PID, p.Command)
	}
	if r.Output != "" {
		fmt.Fprintf(&b, "further output of what is left running: %s\n", r.Output)
	}
	writeNotes(&b, r.Notes)
	return b.String()
}

// pipeClosed is the exit code of a pipe in which a program wrote to one that
// had ended: 128 + SIGPIPE. The shell reports it because of pipefail.
const pipeClosed = 141

// show writes the output of a stream of a command, below head.
func show(b *strings.Builder, text, head string) {
	if text == "" {
		return
	}
	b.WriteString(head + text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

// several lists the first files of a change, and how many more there are.
func several(files []string, total int) string {
	const most = 8
	shown := files[:min(len(files), most)]
	text := strings.Join(shown, ", ")
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func runExec(ctx context.Context, c *call, in execArguments) (execResult, error) {
	shell, err := c.shell(ctx)
	if err != nil {
		return execResult{}, err
	}
	timeout := timeoutDefault
	if in.Timeout > 0 {
		timeout = time.Duration(in.Timeout * float64(time.Second))
	}
	limit := orDefault(in.Limit, outputDefault)
	j, err := c.start(ctx, engine.ExecRequest{
		Dir: c.Dir, Name: c.hold.Name, Argv: append(shell, in.Command), Command: in.Command, Env: unattended(),
		Message: in.Message, Timeout: timeout, WorkDir: in.Dir, Keep: int64(limit),
	})
	if err != nil {
		return execResult{}, err
	}
	return c.await(ctx, j, limit)
}

func runWait(ctx context.Context, c *call, in waitArguments) (execResult, error) {
	j, err := c.session.job(in.Command)
	if err != nil {
		return execResult{}, err
	}
	c.hold = j.hold // not the sandbox that the session has turned to
	if in.Stop {
		j.cancel()
	}
	return c.await(ctx, j, orDefault(in.Limit, outputDefault))
}

// unattended is the environment of commands without a user: programs that would
// open an editor or a pager, or ask for a password, go on or fail at once. An
// editor that changes nothing accepts the text that git proposes.
func unattended() []string {
	return []string{
		"GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "EDITOR=true", "VISUAL=true", "GIT_TERMINAL_PROMPT=0", "GIT_MERGE_AUTOEDIT=no",
		"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=", "DEBIAN_FRONTEND=noninteractive", "PIP_NO_INPUT=1",
	}
}

// shell is how a command is run; agents write for bash. It finds out, once for
// each sandbox, which shell the sandbox has. With pipefail a test that fails is
// not hidden by the program that shortens its output.
func (c *call) shell(ctx context.Context) ([]string, error) {
	c.session.mu.Lock()
	shell := slices.Clone(c.session.shell[c.hold.ID])
	c.session.mu.Unlock()
	if shell != nil {
		return shell, nil
	}
	bash, err := c.Engine.FindProgram(ctx, c.place(), "bash", false)
	if err != nil {
		return nil, err
	}
	if shell = []string{"/bin/sh", "-c"}; bash {
		shell = []string{"bash", "-o", "pipefail", "-c"}
	}
	c.session.mu.Lock()
	c.session.shell[c.hold.ID] = shell
	c.session.mu.Unlock()
	return slices.Clone(shell), nil
}

// result words the outcome of a job, or its state while it runs.
func (c *call) result(ctx context.Context, j *job, limit int) (execResult, error) {
	out := execResult{ExitCode: -1, Files: []string{}, Background: []background{}, Denied: []denial{}, Notes: []string{}}
	out.Running = !j.over()
	stdout, stderr := j.stdout.take(), j.stderr.take()
	out.StdoutBytes, out.StderrBytes = stdout.total, stderr.total
	forOut, forErr := share(limit, stdout.total, stderr.total)
	out.Stdout, _ = stdout.cut(forOut)
	out.Stderr, _ = stderr.cut(forErr)
	if out.Running {
		out.Command, out.Seconds = j.number, time.Since(j.begun).Seconds()
		c.addRefused(ctx, j, &out)
		return out, nil
	}
	c.session.forget(j)
	if j.err != nil {
		return execResult{}, j.err
	}
	exit := j.result.Exit
	out.ExitCode, out.Signal, out.TimedOut, out.Seconds = exit.Code, exit.Signal, exit.TimedOut, exit.Duration.Seconds()
	out.WholeOutput = exit.Kept
	if exit.Kept != "" && exit.KeptBytes < j.written {
		out.WholeNote = fmt.Sprintf("its first %d bytes", exit.KeptBytes)
	}
	if it := j.result.Iteration; it != nil {
		out.Step, out.Commit, out.Changed = it.Number, it.Commit, it.Changed
		out.Files = notesOf(it.Paths[:min(len(it.Paths), 20)])
	}
	for _, p := range exit.Background {
		out.Background = append(out.Background, background{PID: p.PID, Command: oneLine(p.Command, 200)})
	}
	out.Output = exit.Output
	out.Notes = append(c.news(j.result.Notes, j.command), c.aboutHistory(j.command)...)
	if j.waited {
		out.Notes = append(out.Notes, "an editor waited for a terminal and was ended: change files with sandbox-edit, sandbox-write or sed")
	}
	c.addRefused(ctx, j, &out)
	return out, nil
}

// addRefused adds what the network has refused since a command began.
func (c *call) addRefused(ctx context.Context, j *job, out *execResult) {
	refused, err := c.Engine.Refused(ctx, c.place(), j.begun)
	if err != nil {
		// The command has run and is committed; that must not be lost for this.
		out.Notes = append(out.Notes, "what the network refused is not known: "+printable(err.Error()))
	}
	for _, one := range refused {
		d := denial{Destination: printable(one.Destination), Why: printable(one.Why), Preset: one.Preset}
		if one.Rule != "" {
			d.Allow = "litterbox allow " + c.hold.Name + " " + one.Rule
		}
		if len(out.Denied) < 10 {
			out.Denied = append(out.Denied, d)
		}
	}
}

// share divides the room of an answer between the streams: each gets half, and the
// room that the other does not need.
func share(limit int, stdout, stderr int64) (forOut, forErr int) {
	half := int64(limit / 2)
	switch {
	case stdout <= half:
		return int(half), limit - int(stdout)
	case stderr <= half:
		return limit - int(stderr), int(half)
	}
	return int(half), int(half)
}
