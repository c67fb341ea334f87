package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/watch"
)

// watched is an engine in which all this happens.
type watched struct {
	fake
	activities []engine.Activity
	request    engine.WatchRequest
	text       string // in every place that an agent can choose
}

func (w *watched) Watch(_ context.Context, r engine.WatchRequest, each func(engine.Activity) error) error {
	w.request = r
	for _, a := range w.activities {
		if err := each(a); err != nil {
			return err
		}
	}
	return nil
}

func (w *watched) Events(_ context.Context, _ engine.EventsRequest, each func(sandbox.Event) error) error {
	return each(sandbox.Event{Type: sandbox.EventIteration, Sandbox: w.text, Data: map[string]string{"message": w.text, "service": w.text}})
}

func (w *watched) Log(context.Context, string, string) ([]sandbox.Iteration, error) {
	return []sandbox.Iteration{{Number: 1, Message: w.text, Command: w.text, Kind: "exec", Notes: []string{w.text}, Paths: []string{w.text}}}, nil
}

func (w *watched) Audit(context.Context, engine.AuditQuery) (iter.Seq2[engine.AuditEntry, error], error) {
	return func(yield func(engine.AuditEntry, error) bool) {
		entry := engine.AuditEntry{Seq: 1, Event: "read", Action: "sandbox-read", Outcome: "not_found", Problem: w.text, Sandbox: w.text,
			Arguments: map[string]any{"path": w.text}, Who: &engine.AuditWho{Via: "mcp", Client: w.text, Version: w.text}}
		yield(entry, nil)
	}, nil
}

func (w *watched) Cycles(context.Context, string, string) ([]sandbox.Cycle, error) {
	return []sandbox.Cycle{{ID: 1, Kind: "exec", State: sandbox.CycleFailed, Command: w.text, Message: w.text, Problem: w.text}}, nil
}

func (w *watched) ServiceLogs(context.Context, engine.LogRequest) (engine.LogPage, error) {
	return engine.LogPage{Lines: []engine.LogLine{{Service: w.text, Text: w.text}}}, nil
}

func (w *watched) Status(context.Context, string, string) (engine.Status, error) {
	s := engine.Status{Info: info("fix")}
	s.Agent = &sandbox.Agent{Client: w.text, ClientVersion: w.text, Session: w.text}
	s.Services = []engine.ServiceStatus{{Name: w.text, Problem: w.text}}
	s.Cycles = []sandbox.Cycle{{ID: 1, Command: w.text, Message: w.text}}
	s.Background = processes()
	s.Background[0].Command = w.text
	return s, nil
}

// activities has every kind with text in every field that a program inside or an
// MCP client chooses.
func activities(text string) []engine.Activity {
	one := 1
	who := &engine.AuditWho{Via: "mcp", Client: text, Version: text, Session: text}
	list := []engine.Activity{
		{Kind: watch.Call, Call: 3, Action: "sandbox-exec", Who: who, Arguments: map[string]any{"command": text}},
		{Kind: watch.Output, Cycle: 2, Stream: "stdout", Text: text},
		{Kind: watch.Output, Cycle: 2, Stream: "stderr", Text: text},
		{Kind: watch.Lost, Lines: 12},
		{Kind: watch.Lost},
		{Kind: watch.Commit, Cycle: 2, Commit: "2222222bbbb", Text: text, Event: sandbox.EventIteration, Data: map[string]string{"changed": "2", "message": text}},
		{Kind: watch.Result, Call: 3, Action: "sandbox-exec", Who: who, Outcome: "ok", ExitCode: &one, Commit: "2222222bbbb", Duration: 1500 * time.Millisecond},
		{Kind: watch.Read, Call: 4, Action: "sandbox-read", Who: who, Arguments: map[string]any{"path": text}, Outcome: "not_found", Problem: text},
		{Kind: watch.State, State: sandbox.Running, Who: who},
		{Kind: watch.State, Event: sandbox.EventService, Data: map[string]string{"service": text, "problem": text}},
		{Kind: watch.Network, Event: sandbox.EventRefused, Data: map[string]string{"host": text, "port": "443"}},
		{Kind: watch.Limit, Event: sandbox.EventLimit, Data: map[string]string{"limit": "oom", "action": text}},
	}
	for i := range list {
		list[i].Version, list[i].Time, list[i].Repository, list[i].Sandbox, list[i].SandboxID = watch.Version, now, "/src/app", "fix", "id-fix"
	}
	return list
}

func TestWatch(t *testing.T) {
	e := &watched{activities: activities("some text")}
	got := lb(t, e, "", "watch", "fix", "--since", "1h")
	golden(t, "watch.txt", strings.ReplaceAll(got.Stdout, now.Local().Format(time.TimeOnly), "05:06:07"))
	if want := (engine.WatchRequest{Dir: here(t), Name: "fix", Since: now.Add(-time.Hour)}); !reflect.DeepEqual(e.request, want) {
		t.Errorf("%+v", e.request)
	}
	golden(t, "watch.jsonl", lb(t, e, "", "watch", "--json", "--all").Stdout)

	got = lb(t, e, "", "watch", "--only", "commit,state", "--no-follow")
	if strings.Count(got.Stdout, "\n") != 3 || !e.request.NoOutput || !e.request.NoFollow {
		t.Errorf("%+v\n%s", e.request, got.Stdout)
	}
	wantOutcome(t, lb(t, e, "", "watch", "--only", "nonsense"), outcome{Code: 2,
		Stderr: "litterbox: cannot show only \"nonsense\": there is no such kind\n  try: litterbox watch --only call,result,read,output,lost,commit,state,network,limit\n"})
	wantOutcome(t, lb(t, e, "", "watch", "--since", "never"), outcome{Code: 2,
		Stderr: "litterbox: cannot read --since \"never\"\n  try: litterbox watch --since 10m\n"})
}

// Each kind in the documentation is one that is shown here, and the other way
// round.
func TestActivityKinds(t *testing.T) {
	t.Parallel()
	var documented, shown []watch.Kind
	for _, kind := range watch.Kinds() {
		documented = append(documented, kind.Kind)
	}
	for _, a := range activities("") {
		if !slices.Contains(shown, a.Kind) {
			shown = append(shown, a.Kind)
		}
	}
	slices.Sort(documented)
	slices.Sort(shown)
	if diff := cmp.Diff(documented, shown); diff != "" {
		t.Error(diff)
	}
}

// harmful tells which parts of a text a terminal would obey or a reader could not
// see.
func harmful(text string) string {
	if !utf8.ValidString(text) {
		return "invalid UTF-8"
	}
	for i, r := range text {
		if r != '\n' && cli.UnsafeRune(r) {
			return text[i:min(len(text), i+8)]
		}
	}
	return ""
}

// TestNothingAgentMadeHarmsATerminal puts attacks into every place that an agent
// can choose, and reads the output that people read.
func TestNothingAgentMadeHarmsATerminal(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]string{
		"a title":              "\x1b]0;owned\aeverything is fine",
		"the clipboard":        "\x1b]52;c;cm0gLXJmIH4K\a",
		"a link":               "\x1b]8;;http://evil.example\x1b\\README\x1b]8;;\x1b\\",
		"no end":               "\x1b]52;c;cm0g",
		"cursor and colors":    "\x1b[2J\x1b[1A\x1b[31mexit 0\x1b[0m",
		"a device's answer":    "\x1b[c\x1b[6n\x1bZ\x05",
		"8-bit controls":       "\u009b31m\u009d52;c;eA\u009c\u0090q\u009c",
		"raw 8-bit bytes":      "\x9b31m\x9d52;c;eA\x9c",
		"torn UTF-8":           "gr\xc3",
		"overlong UTF-8":       "\xc0\x9b[31m",
		"bidi":                 "user\u202e\u2066 // admin\u2069\u202c",
		"invisible":            "a\u200b\u00ad\U000e0041b\ufeff",
		"line ends":            "first\nlitterbox: all is well\r\x0b\x0c\u0085\u2028\u2029last",
		"backspaces":           "rm -rf /\b\b\b\b\b\b\b\bls",
		"NUL, DEL and shifts":  "a\x00b\x7fc\x0ed\x0f",
		"a sequence in a tail": strings.Repeat("x", 59) + "\x1b[31m" + strings.Repeat("y", 200),
	} {
		if harmful(attack) == "" && !strings.ContainsAny(attack, "\n") {
			t.Errorf("%s is not an attack: the test sees nothing", name)
		}
		e := &watched{activities: activities(attack), text: attack}
		for _, args := range [][]string{
			{"watch"}, {"watch", "--json"}, {"log", "fix"}, {"log", "fix", "--json"}, {"audit"}, {"audit", "--json"}, {"events"}, {"events", "--json"},
			{"cycles", "fix"}, {"cycles", "fix", "--json"}, {"status", "fix"}, {"status", "fix", "--json"}, {"service", "fix", "logs"}, {"service", "fix", "logs", "--json"},
		} {
			got := lb(t, e, "", args...)
			if got.Code != 0 || got.Stdout == "" {
				t.Errorf("%s: %q: %+v", name, args, got)
			}
			if bad := harmful(got.Stdout) + harmful(got.Stderr); bad != "" {
				t.Errorf("%s: %q prints %q", name, args, bad)
			}
			if !slices.Contains(args, "--json") && strings.Contains(got.Stdout, "\nlitterbox: all is well") {
				t.Errorf("%s: %q lets a line pass for one of ours", name, args)
			}
		}
		// One line for each, whatever is in it, and JSON that is whole.
		lines := bufio.NewScanner(strings.NewReader(lb(t, e, "", "watch", "--json").Stdout))
		count := 0
		for ; lines.Scan(); count++ {
			var a engine.Activity
			if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
				t.Errorf("%s: %q: %v", name, lines.Text(), err)
			}
		}
		if text := lb(t, e, "", "watch").Stdout; count != len(e.activities) || strings.Count(text, "\n") != count {
			t.Errorf("%s: %d activities, %d of JSON, text:\n%s", name, len(e.activities), count, text)
		}
	}
}

// A reader that wants no more ends it.
func TestWatchEndsWithItsReader(t *testing.T) {
	t.Parallel()
	e := &watched{activities: activities("x")}
	code := cli.Session{Engine: e, Stdout: brokenPipe{}, Stderr: brokenPipe{}, Now: now}.Run(t.Context(), "watch")
	if code != 141 {
		t.Errorf("exit code %d", code)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) {
	return 0, syscall.EPIPE
}
