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
)

type eventsOptions struct {
	console *console
	events  func(context.Context, engine.EventsRequest, func(sandbox.Event) error) error

	request engine.EventsRequest
	since   string
	json    bool
}

func newEvents(s *session) *cobra.Command {
	o := &eventsOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "events [NAME] [--follow] [--since WHEN]",
		Short: "Show what happened to sandboxes, as it happens",
		Long: `Show what happened to the sandboxes of this repository, or to one of them, the
oldest first: every start and stop, every run and its stages, every commit,
every refused destination. With --json each event is one line; its fields and
types are in docs/reference/events.md. Event numbers only increase, so a program
can continue with --since where it stopped.`,
		Example: `  litterbox events fix-login
  litterbox events --follow --json
  litterbox events --since 10m
  litterbox events --since 1734 --json`,
		Args:              wantArgs(0, 1),
		ValidArgsFunction: s.sandboxNames(false, ""),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.events, o.request.Dir = e.Events, dir
			if len(args) > 0 {
				o.request.Name = args[0]
			}
			return runEvents(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.request.All, "all", false, "include all repositories")
	cmd.Flags().BoolVarP(&o.request.Follow, "follow", "f", false, "wait for more until interrupted")
	cmd.Flags().StringVar(&o.since, "since", "", "only what came after `WHEN`: 10m ago, a time, or an event's number")
	cmd.Flags().BoolVar(&o.json, "json", false, "print each event as one line of JSON")
	return cmd
}

func runEvents(ctx context.Context, o *eventsOptions) error {
	if err := readSince(&o.request, o.since, o.console.now()); err != nil {
		return err
	}
	show := func(ctx context.Context) error {
		return o.events(ctx, o.request, func(event sandbox.Event) error {
			if o.json {
				return o.console.jsonLine(event)
			}
			return o.console.print("%s\n", eventLine(event))
		})
	}
	if o.request.Follow {
		return whileRead(ctx, o.console.stdout, show)
	}
	return show(ctx)
}

// readSince understands a sequence number, a duration and a time.
func readSince(request *engine.EventsRequest, since string, now time.Time) error {
	if since == "" {
		return nil
	}
	if seq, err := strconv.ParseUint(since, 10, 64); err == nil {
		request.After = seq
		return nil
	}
	if at, ok := moment(now, since); ok {
		request.Since = at
		return nil
	}
	return fault.New(fault.Invalid, "cannot read --since %q", since).WithHint("litterbox events --since 10m")
}

// eventLine is an event for people. Names and commands in it may come from anyone;
// nothing in them acts on a terminal.
func eventLine(event sandbox.Event) string {
	parts := []string{event.Time.Local().Format("15:04:05.000"), clean(event.Sandbox)}
	what := string(event.Type)
	if event.Cycle > 0 {
		what += " #" + decimal(event.Cycle)
	}
	parts = append(parts, what)
	for _, key := range slices.Sorted(maps.Keys(event.Data)) {
		parts = append(parts, key+"="+quotedValue(clean(event.Data[key])))
	}
	return strings.Join(parts, "  ")
}

// EventsReference is the page of the documentation about events.
func EventsReference() string {
	var b strings.Builder
	b.WriteString(`# Events

Everything that happens to a sandbox is one event in a log of the state
directory. [litterbox events](commands.md#litterbox-events) shows it; with
` + "`--json`" + ` each event is one line:

` + "```json" + `
{"version":1,"seq":1734,"time":"2026-01-02T03:04:05.678Z","type":"cycle.completed","sandbox":"fix-login","sandbox_id":"fix-login-1a2b3c4d","repository":"/home/me/project/.git","cycle":12,"data":{"exit_code":"0"}}
` + "```" + `

| field | meaning |
|---|---|
| version | of this format; fields and types may be added, but are never renamed |
| seq | increases by one for each event of all sandboxes of a state directory |
| time | when it happened, RFC 3339 |
| type | what happened, see below |
| sandbox, sandbox_id | its name, and an id that distinguishes it from a later sandbox of that name |
| repository | its common git directory |
| cycle | the run it belongs to, see [litterbox cycles](commands.md#litterbox-cycles); missing if there is none |
| data | strings, by type; keys without a value are missing, and a value over 1 KiB is cut |

The log is ` + "`events.jsonl`" + `; full ones (8 MiB) are kept next to it, at most
four. An event never contains a secret.

| type | when | data |
|---|---|---|
`)
	for _, kind := range sandbox.EventTypes() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", kind.Type, kind.Meaning, strings.Join(kind.Data, "; "))
	}
	return b.String()
}
