package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// services is an engine with services and ports.
type services struct {
	cli.UseCases
	list  []engine.ServiceStatus
	lines []engine.LogLine
	ports []engine.Port

	asked  []engine.ServiceRequest
	logged []engine.LogRequest
	opened []string
}

func (s *services) Service(_ context.Context, r engine.ServiceRequest) (engine.ServiceResult, error) {
	s.asked = append(s.asked, r)
	return engine.ServiceResult{Services: s.list, Notes: []string{"started it again"}}, nil
}

func (s *services) ServiceLogs(_ context.Context, r engine.LogRequest) (engine.LogPage, error) {
	s.logged = append(s.logged, r)
	return engine.LogPage{Lines: s.lines}, nil
}

func (s *services) FollowServiceLogs(_ context.Context, r engine.LogRequest, report func(engine.LogLine) error) error {
	s.logged = append(s.logged, r)
	for _, line := range s.lines {
		if err := report(line); err != nil {
			return err
		}
	}
	return nil
}

func (s *services) Ports(context.Context, string, string) ([]engine.Port, error) { return s.ports, nil }

func (s *services) OpenPort(_ context.Context, _, _, port string) (engine.Port, []string, error) {
	s.opened = append(s.opened, port)
	if len(s.ports) == 0 {
		return engine.Port{}, nil, errNotFound
	}
	return s.ports[0], []string{"started it"}, nil
}

func three() []engine.ServiceStatus {
	ended := &service.Ending{Code: 7, At: now}
	return []engine.ServiceStatus{
		{Name: "db", State: service.Running, Wanted: true, PID: 12, StartedAt: now.Add(-3 * time.Minute)},
		{Name: "once", State: service.Exited, Wanted: true, Last: &service.Ending{At: now}},
		{Name: "web", State: service.Backoff, Wanted: true, Restarts: 4, Last: ended, Problem: "its \x1b[2Jprocess ended", NextStart: now.Add(time.Second)},
	}
}

func TestService(t *testing.T) {
	e := &services{list: three()}
	got := lb(t, e, "", "service", "fix")
	golden(t, "text/service.txt", got.Stdout)
	if got.Code != 0 || got.Stderr != "note: started it again\n" {
		t.Errorf("%+v", got)
	}
	golden(t, "json/service.json", lb(t, e, "", "service", "fix", "status", "web", "--json").Stdout)
	// A service that was started and does not run is a failure; it may rest.
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"service", "fix", "start", "web"}, 8}, {[]string{"service", "fix", "restart", "--json"}, 8},
		{[]string{"service", "fix", "start", "--no-wait"}, 0}, {[]string{"service", "fix", "stop"}, 0},
	} {
		got := lb(t, e, "", c.args...)
		if got.Code != c.code || c.code == 8 && !strings.HasSuffix(got.Stderr, "litterbox: service \"web\" does not run: its process ended\n  try: litterbox service fix logs web\n") {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
	want := []engine.ServiceRequest{
		{Name: "fix", Action: "status"}, {Name: "fix", Action: "status", Services: []string{"web"}}, {Name: "fix", Action: "start", Services: []string{"web"}},
		{Name: "fix", Action: "restart", Services: []string{}}, {Name: "fix", Action: "start", Services: []string{}, NoWait: true},
		{Name: "fix", Action: "stop", Services: []string{}},
	}
	for i := range want {
		want[i].Dir = here(t)
	}
	if diff := cmp.Diff(want, e.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	e.list = nil
	got = lb(t, e, "", "service", "fix")
	if got.Stdout != "" || !strings.Contains(got.Stderr, "no services") {
		t.Errorf("%+v", got)
	}
	wantOutcome(t, lb(t, e, "", "service", "fix", "--json"), outcome{0, "[]\n", "note: started it again\n"})
}

func TestServiceLogs(t *testing.T) {
	e := &services{lines: []engine.LogLine{
		{Service: "web", Time: now, Own: true, Text: "started (pid 3)", Next: 40},
		{Service: "web", Time: now, Text: "\x1b]0;evil\x07ready\u202e", Next: 80},
	}}
	wantOutcome(t, lb(t, e, "", "service", "fix", "logs", "web"), outcome{0, "-- started (pid 3)\nready\n", ""})
	wantOutcome(t, lb(t, e, "", "service", "fix", "logs", "--follow"), outcome{0, "web | -- started (pid 3)\nweb | ready\n", ""})
	golden(t, "json/service-logs.json", lb(t, e, "", "service", "fix", "logs", "--json", "--tail", "5", "--since", "10m").Stdout)
	got := lb(t, e, "", "service", "fix", "logs", "web", "--follow", "--json")
	if strings.Count(got.Stdout, "\n") != 2 || !strings.HasPrefix(got.Stdout, `{"service":"web","time":"2026-03-04T05:06:07Z","supervisor":true,`) {
		t.Errorf("%+v", got)
	}
	want := []engine.LogRequest{
		{Service: "web", Tail: 100}, {Tail: 100}, {Tail: 5, Since: now.Add(-10 * time.Minute)}, {Service: "web", Tail: 100},
	}
	for i := range want {
		want[i].Dir, want[i].Name, want[i].From = here(t), "fix", -1
	}
	if diff := cmp.Diff(want, e.logged); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	for _, args := range [][]string{{"logs", "web", "db"}, {"logs", "--since", "never"}} {
		if got := lb(t, e, "", append([]string{"service", "fix"}, args...)...); got.Code != 2 {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestPorts(t *testing.T) {
	e := &services{ports: []engine.Port{
		{Name: "web", Inside: 3000, Host: 23456, Address: "127.0.0.1", URL: "http://web.fix.localhost:23456/", Open: true},
		{Name: "new", Address: "127.0.0.1"},
	}}
	golden(t, "text/ports.txt", lb(t, e, "", "ports", "fix").Stdout)
	golden(t, "json/ports.json", lb(t, e, "", "ports", "fix", "--json").Stdout)
	wantOutcome(t, lb(t, e, "", "open", "fix", "web"), outcome{0, "http://web.fix.localhost:23456/\n", "note: started it\n"})
	e.ports = nil
	if got := lb(t, e, "", "ports", "fix"); got.Stdout != "" || !strings.Contains(got.Stderr, "no ports") {
		t.Errorf("%+v", got)
	}
	wantOutcome(t, lb(t, e, "", "ports", "fix", "--json"), outcome{0, "[]\n", ""})
	if got := lb(t, e, "", "open", "fix"); got.Code != 3 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{"web", ""}, e.opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
}

func TestBrowsers(t *testing.T) {
	for _, c := range []struct {
		system string
		env    map[string]string
		want   [][]string
	}{
		{"linux", nil, nil},
		{"linux", map[string]string{"DISPLAY": ":0"}, [][]string{{"xdg-open"}}},
		{"linux", map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, [][]string{{"xdg-open"}}},
		{"darwin", nil, [][]string{{"open"}}},
		{"linux", map[string]string{"BROWSER": "firefox -P %s:w3m", "DISPLAY": ":0"}, [][]string{{"firefox", "-P"}, {"w3m"}}},
		{"darwin", map[string]string{"BROWSER": "::"}, [][]string{{"open"}}},
	} {
		got := cli.Browsers(c.system, func(key string) string { return c.env[key] })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", c.system, c.env, diff)
		}
	}
}

// A reader that goes away ends the following.
func TestFollowEndsWithItsReader(t *testing.T) {
	e := &services{lines: []engine.LogLine{{Text: "a"}, {Text: "b"}}}
	code := cli.Session{Engine: e, Stdin: strings.NewReader(""), Stdout: broken{}, Stderr: broken{}, Now: now}.
		Run(t.Context(), "service", "fix", "logs", "--follow")
	if code == 0 {
		t.Error("nobody noticed")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
