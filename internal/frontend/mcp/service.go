package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

type serviceArguments struct {
	Action  string `json:"action" jsonschema:"start, stop, restart, status or logs"`
	Service string `json:"service,omitempty" jsonschema:"its name; default all of them for status"`
	From    int64  `json:"from,omitempty" jsonschema:"of logs: the next of the page before, 1 for the beginning; default the last lines"`
	Lines   int    `json:"lines,omitempty" jsonschema:"of logs: at most, default 50"`
}

// What one page of a log may hold: a model pays for every line.
const (
	logLines    = 50
	logLinesMax = 500
	logBytes    = 16 << 10
	logLine     = 1 << 10
)

func (a serviceArguments) check() error {
	switch a.Action {
	case "status":
		return nil
	case "start", "stop", "restart":
		return filled("service", a.Service, "name the service")
	case "logs":
		if a.From < 0 {
			return fmt.Errorf("from is %d and must be the next of a page before", a.From)
		}
		if a.Lines < 0 || a.Lines > logLinesMax {
			return fmt.Errorf("lines is %d and must be 1 to %d", a.Lines, logLinesMax)
		}
		return filled("service", a.Service, "name the service")
	}
	return fmt.Errorf("action is %q and must be start, stop, restart, status or logs", oneLine(a.Action, 40))
}

func (a serviceArguments) logged() map[string]any {
	return map[string]any{"action": a.Action, "service": a.Service}
}

type service struct {
	Name    string `json:"name"`
	State   string `json:"state" jsonschema:"running means ready"`
	Problem string `json:"problem,omitempty"`
}

type serviceResult struct {
	Services []service `json:"services"`
	Log      string    `json:"log,omitempty" jsonschema:"lines that it printed; those of its supervisor begin with --"`
	Next     int64     `json:"next,omitempty" jsonschema:"pass as from to go on"`
	More     bool      `json:"more,omitempty" jsonschema:"there is more already"`
	logs     bool
}

func (r serviceResult) text() string {
	if r.logs {
		text := r.Log
		if text == "" {
			text = "nothing more was printed\n"
		}
		if r.More {
			return text + fmt.Sprintf("there is more: from %d\n", r.Next)
		}
		return text + fmt.Sprintf("what comes later: from %d\n", r.Next)
	}
	if len(r.Services) == 0 {
		return "no services are configured; the human names them in .litterbox.toml under container.services"
	}
	text := ""
	for _, s := range r.Services {
		text += s.Name + ": " + s.State
		if s.Problem != "" {
			text += " (" + s.Problem + ")"
		}
		text += "\n"
	}
	return text
}

func runService(ctx context.Context, c *call, in serviceArguments) (serviceResult, error) {
	if in.Action == "logs" {
		return serviceLog(ctx, c, in)
	}
	request := engine.ServiceRequest{Dir: c.Dir, Name: c.hold.Name, Action: engine.ServiceWish(in.Action)}
	if in.Service != "" {
		request.Services = []string{in.Service}
	}
	done, err := c.Engine.Service(ctx, request)
	if err != nil {
		return serviceResult{}, err
	}
	result := serviceResult{Services: []service{}}
	for _, s := range done.Services {
		result.Services = append(result.Services, service{Name: s.Name, State: string(s.State), Problem: oneLine(s.Problem, 200)})
	}
	return result, nil
}

// serviceLog gives one page of what a service printed: the last lines, or those
// from an offset on. Both are cut to as much as a model should read at once.
func serviceLog(ctx context.Context, c *call, in serviceArguments) (serviceResult, error) {
	lines := orDefault(in.Lines, logLines)
	request := engine.LogRequest{Dir: c.Dir, Name: c.hold.Name, Service: in.Service, From: in.From, Limit: lines}
	last := in.From == 0
	if in.From == 1 {
		request.From = 0
	}
	if last {
		request.From, request.Tail, request.Limit = -1, lines, 0
	}
	page, err := c.Engine.ServiceLogs(ctx, request)
	if err != nil {
		return serviceResult{}, err
	}
	result := serviceResult{Services: []service{}, Next: page.Next, More: page.More, logs: true}
	var texts []string
	size := 0
	for i := range page.Lines {
		line := page.Lines[i]
		if last {
			line = page.Lines[len(page.Lines)-1-i] // the newest count
		}
		text := logText(line.Text)
		if line.Own {
			text = "-- " + text
		}
		if size += len(text) + 1; size > logBytes {
			if !last {
				result.More = true
				break
			}
			texts = append(texts, "-- (earlier lines are left out)")
			break
		}
		texts = append(texts, text)
		if !last {
			result.Next = line.Next
		}
	}
	if last {
		slices.Reverse(texts)
	}
	for _, text := range texts {
		result.Log += text + "\n"
	}
	return result, nil
}

// logText is a line as it was printed, indentation included.
func logText(text string) string {
	text = strings.ReplaceAll(printable(strings.TrimRight(text, "\r\n")), "\n", " ")
	if len(text) > logLine {
		text = strings.ToValidUTF8(text[:logLine], "") + "…"
	}
	return text
}
