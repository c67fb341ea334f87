package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// request is an ExecRequest without its streams.
func request(r engine.ExecRequest) engine.ExecRequest {
	r.Streams = engine.Streams{}
	return r
}

func TestExecArguments(t *testing.T) {
	dir := here(t)
	for _, c := range []struct {
		args []string
		want engine.ExecRequest
	}{
		{[]string{"exec", "fix", "--", "ls", "-l"}, engine.ExecRequest{Argv: []string{"ls", "-l"}}},
		{[]string{"exec", "fix", "ls"}, engine.ExecRequest{Argv: []string{"ls"}}},
		{[]string{"exec", "fix", "ls", "-l", "--", "x"}, engine.ExecRequest{Argv: []string{"ls", "-l", "--", "x"}}},
		{[]string{"exec", "fix", "--", "-x"}, engine.ExecRequest{Argv: []string{"-x"}}},
		{[]string{"exec", "fix", "--", "--", "x"}, engine.ExecRequest{Argv: []string{"--", "x"}}},
		{[]string{"exec", "fix", "--", "a", "-m", "b", "--json"}, engine.ExecRequest{Argv: []string{"a", "-m", "b", "--json"}}},
		{[]string{"exec", "-m", "why", "fix", "--", "a"}, engine.ExecRequest{Argv: []string{"a"}, Message: "why"}},
		{[]string{"exec", "fix", "-m", "why", "--timeout", "90s", "-e", "A=1,2", "-e", "B=", "-w", "sub", "--", "a"}, engine.ExecRequest{
			Argv: []string{"a"}, Message: "why", Timeout: 90 * time.Second, Env: []string{"A=1,2", "B="}, WorkDir: "sub",
		}},
		{[]string{"exec", "-e", "A=1", "fix", "-e", "B=2", "a"}, engine.ExecRequest{Argv: []string{"a"}, Env: []string{"A=1", "B=2"}}},
		{[]string{"exec", "--no-commit", "--allow-degraded", "fix", "--", "a"}, engine.ExecRequest{Argv: []string{"a"}, NoCommit: true, AllowDegraded: true}},
		{[]string{"exec", "fix", "--", ""}, engine.ExecRequest{Argv: []string{""}}},
		{[]string{"run", "fix", "-m", "why", "--", "a", "--rm"}, engine.ExecRequest{Argv: []string{"a", "--rm"}, Message: "why"}},
		{[]string{"shell", "fix", "--", "fish"}, engine.ExecRequest{Argv: []string{"fish"}, Kind: "shell"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var got []engine.ExecRequest
			e := &fake{
				exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
					got = append(got, request(r))
					return engine.ExecResult{}, nil
				},
				exists: func(string, string) (bool, error) { return true, nil },
			}
			wantOutcome(t, lb(t, e, "", c.args...), outcome{})
			want := c.want
			want.Dir, want.Name, want.Refusals = dir, "fix", true
			if want.Kind == "" {
				want.Kind = "exec"
			}
			if diff := cmp.Diff([]engine.ExecRequest{want}, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecRefusesWrongArguments(t *testing.T) {
	for _, c := range []struct{ args, cause string }{
		{"exec", "0 arguments"},
		{"exec fix", "no command after"},
		{"exec fix --", "no command after"},
		{"run fix", "no command after"},
		{"run -- pwd", "no sandbox name before --"},
		{"exec -m why -- ls -l", "no sandbox name before --"},
		{"exec -e NOVALUE fix -- a", `cannot pass "NOVALUE" on: it is not set here`},
		{"exec --env-file /nonexistent fix -- a", "cannot read the environment file"},
		{"exec -e =x fix -- a", "not of the form K=V"},
		{"exec --timeout -1s fix -- a", "must be positive"},
		{"exec --timeout soon fix -- a", "--timeout must be a duration such as 90s or 5m, not \"soon\""},
		{"exec --no-commit -m why fix -- a", "-m names a commit"},
		{"exec fix --bogus -- a", "unknown flag"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := lb(t, nil, "", strings.Fields(c.args)...)
			if got.Code != 125 || got.Stdout != "" || !strings.Contains(got.Stderr, c.cause) || !strings.Contains(got.Stderr, "  try: litterbox ") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestExecPassesStreamsAndExitCode(t *testing.T) {
	e := &fake{exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
		in, err := io.ReadAll(r.Streams.Stdin)
		if err != nil {
			return engine.ExecResult{}, err
		}
		if r.Streams.Terminal != nil || r.Streams.Resize != nil {
			return engine.ExecResult{}, fmt.Errorf("a terminal without a terminal")
		}
		fmt.Fprintf(r.Streams.Stdout, "raw \x1b[31m%s", in)
		fmt.Fprint(r.Streams.Stderr, "complaint\n")
		return engine.ExecResult{
			Exit: wire.Exit{
				Code: 42, TimedOut: true, Output: "/tmp/late", Background: []wire.Process{{PID: 7, Command: "serve\x1b]0;x\x07 --all"}},
			},
			Notes: []string{"stayed out: a.sock\x1b[2J"},
		}, nil
	}}
	wantOutcome(t, lb(t, e, "input", "exec", "--timeout", "10s", "fix", "--", "a"), outcome{
		42, "raw \x1b[31minput",
		"complaint\nnote: timed out after 10s\nnote: stayed out: a.sock\nnote: still running: 7 serve --all\n" +
			"note: their further output goes to /tmp/late inside\n",
	})
}

func TestExecJSON(t *testing.T) {
	e := &fake{exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
		fmt.Fprint(r.Streams.Stdout, "out \u009b31m <&>\n")
		fmt.Fprint(r.Streams.Stderr, "err\n")
		return engine.ExecResult{
			Exit:      wire.Exit{Code: 3, Duration: time.Second},
			Iteration: &sandbox.Iteration{Version: 1, Number: 5, Cycle: 2, Kind: "exec", Message: "a", Commit: "2222222bbbb", StartedAt: now, ExitCode: 3},
		}, nil
	}}
	got := lb(t, e, "", "exec", "--json", "fix", "--", "a")
	if got.Code != 3 || got.Stderr != "" {
		t.Errorf("exit code %d, stderr %q", got.Code, got.Stderr)
	}
	golden(t, "json/exec.json", got.Stdout)
	// The bytes are unchanged for a reader of JSON, and harmless for a terminal.
	var document struct{ Stdout string }
	if err := json.Unmarshal([]byte(got.Stdout), &document); err != nil {
		t.Fatal(err)
	}
	if want := "out \u009b31m <&>\n"; document.Stdout != want {
		t.Errorf("stdout %q, want %q", document.Stdout, want)
	}
	if strings.Contains(got.Stdout, "\u009b") {
		t.Error("a raw control character in the document")
	}
}

func TestExecJSONBoundsWhatItKeeps(t *testing.T) {
	chunk := []byte(strings.Repeat("x", 1<<20))
	e := &fake{exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
		for range 9 {
			if n, err := r.Streams.Stdout.Write(chunk); n != len(chunk) || err != nil {
				return engine.ExecResult{}, fmt.Errorf("wrote %d, %w", n, err)
			}
		}
		return engine.ExecResult{}, nil
	}}
	var document struct {
		Stdout    string
		Truncated bool
	}
	got := lb(t, e, "", "exec", "--json", "fix", "--", "yes")
	if err := json.Unmarshal([]byte(got.Stdout), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Stdout) != 8<<20 || !document.Truncated {
		t.Errorf("kept %d bytes, truncated %t", len(document.Stdout), document.Truncated)
	}
}

func TestShellChoosesTheUsersShell(t *testing.T) {
	for _, c := range []struct {
		name    string
		found   bool
		want    string
		message string
	}{{"it exists inside", true, "zsh", "shell session"}, {"it does not", false, "sh", "shell session"}} {
		t.Run(c.name, func(t *testing.T) {
			var got []engine.ExecRequest
			e := &fake{found: c.found, exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
				got = append(got, request(r))
				return engine.ExecResult{Exit: wire.Exit{Code: 9}}, nil
			}}
			wantOutcome(t, lb(t, e, "", "shell", "fix"), outcome{9, "", ""})
			want := []engine.ExecRequest{
				{Dir: here(t), Name: "fix", Kind: "shell", Interactive: true, Refusals: true, Message: c.message, Argv: []string{c.want}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
