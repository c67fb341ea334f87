package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type serviceOptions struct {
	console *console
	service func(context.Context, engine.ServiceRequest) (engine.ServiceResult, error)
	logs    func(context.Context, engine.LogRequest) (engine.LogPage, error)
	follow  func(context.Context, engine.LogRequest, func(engine.LogLine) error) error

	request   engine.ServiceRequest
	json      bool
	following bool
	tail      int
	since     string
}

func newService(s *session) *cobra.Command {
	o := &serviceOptions{console: s.console}
	cmd := &cobra.Command{
		Use:   "service NAME [start|stop|restart|status|logs] [SERVICE...]",
		Short: "Run and watch a sandbox's services",
		Long: `Start, stop and restart the services of a sandbox, or show their state or logs.
Without SERVICE it applies to all of them. Services are configured below
[container.services] in .litterbox.toml; they start with the sandbox until you stop
them. Starting one also starts the services that it needs, and waits until it is
ready.`,
		Example: `  litterbox service fix-login
  litterbox service fix-login restart web
  litterbox service fix-login logs web --follow
  litterbox service fix-login logs --since 10m --tail -1`,
		Args:              wantArgs(1, -1),
		ValidArgsFunction: s.thenComplete(completeService),
		RunE: s.action(func(ctx context.Context, e useCases, dir string, args []string) error {
			o.service, o.logs, o.follow = e.Service, e.ServiceLogs, e.FollowServiceLogs
			o.request.Dir, o.request.Name, o.request.Action = dir, args[0], "status"
			if len(args) > 1 {
				o.request.Action, o.request.Services = engine.ServiceWish(args[1]), args[2:]
			}
			if o.request.Action == "logs" {
				return runServiceLogs(ctx, o)
			}
			return runService(ctx, o)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array; with --follow one object for each line")
	cmd.Flags().BoolVar(&o.request.NoWait, "no-wait", false, "do not wait until services are ready or have ended")
	cmd.Flags().BoolVar(&o.following, "follow", false, "with logs: keep printing lines as they come")
	cmd.Flags().IntVar(&o.tail, "tail", 100, "with logs: the last `LINES` of each service; -1 for all")
	cmd.Flags().StringVar(&o.since, "since", "", "with logs: lines since a `TIME`: 10m ago, or 2006-01-02T15:04:05Z")
	allowDegradedFlag(cmd, &o.request.AllowDegraded)
	return cmd
}

func runService(ctx context.Context, o *serviceOptions) error {
	result, err := o.service(ctx, o.request)
	if err != nil {
		return err
	}
	o.console.notes(result.Notes)
	if o.json {
		err = o.console.document(list(result.Services))
	} else {
		err = printServices(o.console, result.Services)
	}
	if err != nil {
		return err
	}
	if o.request.NoWait || o.request.Action != "start" && o.request.Action != "restart" {
		return nil
	}
	for _, s := range result.Services {
		if s.State != "running" && !(s.State == "exited" && s.Last != nil && s.Last.Code == 0) {
			why := s.Problem
			if why == "" {
				why = "it is " + string(s.State)
			}
			return fault.New(fault.Unavailable, "service %q does not run: %s", s.Name, clean(why)).
				WithHint("litterbox service %s logs %s", o.request.Name, s.Name)
		}
	}
	return nil
}

func printServices(c *console, services []engine.ServiceStatus) error {
	if len(services) == 0 {
		c.note("no services; describe them below [container.services] in .litterbox.toml")
		return nil
	}
	rows := [][]string{{"SERVICE", "STATE", "WANTED", "PID", "SINCE", "RESTARTS", "PROBLEM"}}
	for _, s := range services {
		rows = append(rows, serviceRow(c, s))
	}
	return c.table(rows)
}

func serviceRow(c *console, s engine.ServiceStatus) []string {
	pid, since := "-", "-"
	if s.PID != 0 {
		pid, since = decimal(s.PID), ago(c.now(), s.StartedAt)
	}
	problem := s.Problem
	if problem == "" && s.State == "exited" && s.Last != nil {
		problem = ending(s.Last.Code, s.Last.Signal, false)
	}
	return []string{s.Name, string(s.State), yesNo(s.Wanted), pid, since, decimal(s.Restarts), problem}
}

func runServiceLogs(ctx context.Context, o *serviceOptions) error {
	request := engine.LogRequest{Dir: o.request.Dir, Name: o.request.Name, From: -1, Tail: o.tail}
	if len(o.request.Services) > 1 {
		return fault.New(fault.Invalid, "cannot show the logs of %s: name one service or none", strings.Join(o.request.Services, " ")).
			WithHint("litterbox service %s logs", o.request.Name)
	}
	request.Service = strings.Join(o.request.Services, "")
	if o.since != "" {
		at, ok := moment(o.console.now(), o.since)
		if !ok {
			return fault.New(fault.Invalid, "cannot read --since %q", o.since).WithHint("litterbox service %s logs --since 10m", request.Name)
		}
		request.Since = at
	}
	if !o.following {
		page, err := o.logs(ctx, request)
		if err != nil {
			return err
		}
		if o.json {
			return o.console.document(list(page.Lines))
		}
		for _, line := range page.Lines {
			if err := printLogLine(o.console, line, request.Service == ""); err != nil {
				return err
			}
		}
		return nil
	}
	return whileRead(ctx, o.console.stdout, func(ctx context.Context) error {
		return o.follow(ctx, request, func(line engine.LogLine) error {
			if o.json {
				return o.console.jsonLine(line)
			}
			return printLogLine(o.console, line, request.Service == "")
		})
	})
}

// printLogLine prints one line; lines of the supervisor are set apart.
func printLogLine(c *console, line engine.LogLine, named bool) error {
	text := clean(line.Text)
	if line.Own {
		text = c.style("2", "-- "+text)
	}
	if named {
		text = clean(line.Service) + " | " + text
	}
	return c.print("%s\n", text)
}
