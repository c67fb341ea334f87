package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/redteam"
)

// attacked has one attack of each verdict.
func attacked(ctx context.Context, o redteam.Options) (redteam.Report, error) {
	results := []redteam.Result{
		{
			Class: "files", Attack: "read", Escape: "keys", Seen: "nothing \x1b[2J", Control: "a key", Verdict: redteam.Closed,
			Defence: "internal/a.go",
		},
		{Class: "network", Attack: "leave", Escape: "data", Verdict: redteam.Skipped, Reason: "there is no network", Defence: "internal/b.go"},
		{Class: "kernel", Attack: "mount", Escape: "files", Seen: "mounted", Control: "mounted", Verdict: redteam.Open, Defence: "internal/c.go"},
	}
	for i, r := range results {
		o.Began(r.Class, r.Attack, i, len(results))
		o.Ended(r)
	}
	return redteam.Report{Driver: "namespace", Isolation: "full", Attacks: results, Closed: 1, Open: 1, Skipped: 1}, nil
}

func TestRedteam(t *testing.T) {
	for _, c := range []struct {
		json bool
		file string
	}{{true, "json/redteam.json"}, {false, "text/redteam.txt"}} {
		var stdout, stderr strings.Builder
		code := cli.Session{Stdout: &stdout, Stderr: &stderr, Env: map[string]string{}}.Redteam(t.Context(), attacked, c.json)
		if code != 1 || stderr.String() != "" {
			t.Errorf("%s: exit code %d, want 1 because one is open; %s", c.file, code, stderr.String())
		}
		golden(t, c.file, stdout.String())
	}
}

// Without an open attack the exit code is 0, however many were skipped.
func TestRedteamWithoutEscape(t *testing.T) {
	var stdout strings.Builder
	none := func(context.Context, redteam.Options) (redteam.Report, error) {
		return redteam.Report{Skipped: 3}, nil
	}
	if code := (cli.Session{Stdout: &stdout, Stderr: &stdout}).Redteam(t.Context(), none, true); code != 0 || !strings.Contains(stdout.String(), `"attacks": []`) {
		t.Errorf("exit code %d: %s", code, stdout.String())
	}
}

func TestRedteamRefuses(t *testing.T) {
	for _, args := range [][]string{{"redteam", "--only", "nothing"}, {"redteam", "--driver", "nothing"}, {"redteam", "now"}} {
		if got := lb(t, nil, "", args...); got.Code != 2 || !strings.Contains(got.Stderr, "  try: litterbox redteam") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := lb(t, nil, "", "__complete", "redteam", "--only", ""); !strings.Contains(got.Stdout, "network\n") {
		t.Errorf("%+v", got)
	}
}
