package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/watch"
)

type watchOptions struct {
	console *console
	watch   func(context.Context, engine.WatchRequest, func(engine.Activity) error) error

	request engine.WatchRequest
	since   string
	only    []string
	json    bool
}

func newWatch(s *session) *cobra.Command {
	o := &watchOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "watch [NAME]",
		Short: "Watch what agents do, live",
		Long: `Watch the sandboxes of this repository, or one of them, until Ctrl-C: calls of
agents and commands of people with their results, the output of commands, commits,
refused destinations, changes of state. Sandboxes created meanwhile are included.
It begins with the commands that are running, or with --since at that time.

Watching starts nothing and slows nothing down: a slow reader is told how many
lines of output were left out. Secrets are redacted as in litterbox audit.
With --json each line is one object, see docs/reference/watch.md.`,
		Example: `  litterbox watch
  litterbox watch fix-login --since 10m
  litterbox watch --all --no-output
  litterbox watch --only call,result --json`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.watch, o.request.Dir = e.Watch, dir
			if len(args) > 0 {
				o.request.Name = args[0]
			}
			return runWatch(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.request.All, "all", false, "include all repositories")
	cmd.Flags().StringVar(&o.since, "since", "", "begin with what happened since `WHEN`: 10m ago, or a time")
	cmd.Flags().BoolVar(&o.request.NoOutput, "no-output", false, "leave out what commands print")
	cmd.Flags().BoolVar(&o.request.NoFollow, "no-follow", false, "stop after what has happened so far")
	cmd.Flags().StringSliceVar(&o.only, "only", nil, "only these `KINDS` of activities, such as call,commit")
	cmd.Flags().BoolVar(&o.json, "json", false, "print each activity as one line of JSON")
	return cmd
}

func kinds() []string {
	var names []string
	for _, kind := range watch.Kinds() {
		names = append(names, string(kind.Kind))
	}
	return names
}

func runWatch(ctx context.Context, o *watchOptions) error {
	if o.since != "" {
		since, ok := moment(o.console.now(), o.since)
		if !ok {
			return fault.New(fault.Invalid, "cannot read --since %q", o.since).WithHint("litterbox watch --since 10m")
		}
		o.request.Since = since
	}
	for _, kind := range o.only {
		if !slices.Contains(kinds(), kind) {
			return fault.New(fault.Invalid, "cannot show only %q: there is no such kind", kind).
				WithHint("litterbox watch --only %s", strings.Join(kinds(), ","))
		}
	}
	if len(o.only) > 0 && !slices.Contains(o.only, string(watch.Output)) && !slices.Contains(o.only, string(watch.Lost)) {
		o.request.NoOutput = true
	}
	return whileRead(ctx, o.console.stdout, func(ctx context.Context) error {
		return o.watch(ctx, o.request, func(a engine.Activity) error {
			if len(o.only) > 0 && !slices.Contains(o.only, string(a.Kind)) {
				return nil
			}
			if o.json {
				return o.console.jsonLine(a)
			}
			return o.console.print("%s\n", o.line(a))
		})
	})
}

// line is an activity for people. The word behind the name says what it is;
// colors only repeat that.
func (o *watchOptions) line(a engine.Activity) string {
	word, color, rest := string(a.Kind), "", ""
	switch a.Kind {
	case watch.Call:
		color, rest = "1;36", callText(a)+by(a)
	case watch.Read:
		color, rest = "36", callText(a)+by(a)+arrow(a)
	case watch.Result:
		if color = "32"; a.Outcome != "ok" || a.ExitCode != nil && *a.ExitCode != 0 {
			color = "31"
		}
		rest = a.Action + arrow(a)
	case watch.Output:
		word, rest = a.Stream, a.Text
		if color = "2"; a.Stream == "stderr" {
			color = "33"
		}
	case watch.Lost:
		color, rest = "35", counted(int(a.Lines), "line of output is", "lines of output are")+" not shown: this watcher is too slow"
		if a.Lines == 0 {
			rest = "the rest of the output is not known: the sandbox stopped"
		}
	case watch.Commit:
		color, rest = "1;32", short(a.Commit)+" "+a.Text
		if n, err := strconv.Atoi(a.Data["changed"]); err == nil {
			rest += " (" + filesText(n) + ")"
		}
	case watch.State:
		color, rest = "34", stateText(a)
	case watch.Network, watch.Limit:
		color, rest = "35", eventText(a)
	}
	name := a.Sandbox
	if name == "" {
		name = "-"
	}
	line := a.Time.Local().Format(time.TimeOnly) + " " + o.console.style("1", clean(name)) + " " + o.console.style(color, word)
	if rest = clean(rest); rest != "" {
		line += " " + rest
	}
	return line
}

func filesText(n int) string {
	if n == 1 {
		return "1 file"
	}
	return strconv.Itoa(n) + " files"
}

func callText(a engine.Activity) string {
	if text := argumentsText(a.Arguments); text != "" {
		const width = 160
		if runes := []rune(text); len(runes) > width {
			text = string(runes[:width-1]) + "…"
		}
		return a.Action + " " + text
	}
	return a.Action
}

// by names the requester, unless it is a human at a command line.
func by(a engine.Activity) string {
	if a.Who == nil || a.Who.Via == "cli" {
		return ""
	}
	return " (" + strings.TrimSpace(a.Who.Client+" "+a.Who.Version) + ")"
}

// arrow words the result of a call.
func arrow(a engine.Activity) string {
	text := " → "
	switch {
	case a.Outcome != "ok":
		text += a.Outcome + ": " + a.Problem
	case a.ExitCode != nil:
		text += "exit " + strconv.Itoa(*a.ExitCode)
	default:
		text += "ok"
	}
	if a.Kind == watch.Result {
		text += " in " + took(a.Duration)
	}
	if a.Commit != "" {
		text += ", commit " + short(a.Commit)
	}
	return text
}

func stateText(a engine.Activity) string {
	if a.Event == "" {
		if a.Who != nil {
			return string(a.State) + ", held by" + by(a)
		}
		return string(a.State)
	}
	return eventText(a)
}

func eventText(a engine.Activity) string {
	// "network network.refused" says one word twice.
	subject, what, _ := strings.Cut(string(a.Event), ".")
	if subject != string(a.Kind) && subject != "sandbox" {
		what = string(a.Event)
	}
	parts := []string{what}
	if a.Event == sandbox.EventCycleFailed {
		parts[0] += " #" + decimal(a.Cycle)
	}
	for _, key := range slices.Sorted(maps.Keys(a.Data)) {
		parts = append(parts, key+"="+quotedValue(a.Data[key]))
	}
	return strings.Join(parts, " ")
}

func quotedValue(value string) string {
	if strings.ContainsAny(value, " \t\n") {
		return strconv.Quote(value)
	}
	return value
}

// WatchReference is the page of the documentation about watch --json.
func WatchReference() string {
	var b strings.Builder
	b.WriteString(`# Watching

[litterbox watch](commands.md#litterbox-watch) shows what is done in sandboxes while
it is done. With ` + "`--json`" + ` each activity is one line:

` + "```json" + `
{"version":1,"time":"2026-01-02T03:04:05.678Z","kind":"output","repository":"/home/me/project","sandbox":"fix-login","sandbox_id":"fix-login-1a2b3c4d","cycle":12,"stream":"stdout","text":"ok  	example.com/login	0.012s"}
` + "```" + `

Activities are ordered by time, about 0.2 s late, so that several sources can be
merged. Fields and kinds may be added, but are never renamed; a field without a
value is missing.

| field | meaning |
|---|---|
| version | of this format |
| time | when it happened, RFC 3339 |
| kind | what it is, see below |
| repository | its working directory |
| sandbox, sandbox_id | its name, and an id that distinguishes it from a later sandbox of that name; missing for what concerns the whole repository |
| call | number of the entry in the audit log, which a call and its result share |
| action | the tool or the command |
| who | who asked: ` + "`via` (cli, mcp or ssh), `client`, `version`, `session`, `user`, `pid`" + ` |
| arguments | as in the audit log: redacted, content of files as a hash |
| outcome, problem | ` + "`ok`" + ` or the kind of the error, and its text |
| exit_code | of a command |
| duration_ns | how long the call took |
| cycle | the run, see [litterbox cycles](commands.md#litterbox-cycles) |
| stream, text | ` + "`stdout` or `stderr`" + `, and the line without its end; a commit's first line |
| lines | how many lines are missing; without it that is unknown |
| commit | its id |
| state | of a sandbox as the watcher found it |
| event, data | the event, see [events](events.md) |

| kind | when | fields |
|---|---|---|
`)
	for _, kind := range watch.Kinds() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", kind.Kind, kind.Meaning, kind.Fields)
	}
	b.WriteString(`
## What is shown of output

The output of every command that runs without a terminal, from any client,
line by line. Each keeper remembers the last 256 KiB of its sandbox's commands;
watchers read from there, so a command never waits for one, and a watcher that
falls behind gets a ` + "`lost`" + ` activity instead of what was overwritten. With
` + "`--since`" + ` what is still remembered is shown too. A line over 4 KiB is cut. What runs
on a terminal (a shell, exec with one) is not shown.

## Secrets and terminals

Lines pass through the same redaction as the arguments in the audit log: values
of variables that are named like secrets, tokens of known forms, userinfo in
URLs, private keys. Encoded or split secrets are not recognised.

Whatever an agent could choose (output, names, messages, paths) is printed
without escape sequences, control characters, bidirectional overrides and
invalid UTF-8; in JSON they are escaped.
`)
	return b.String()
}
