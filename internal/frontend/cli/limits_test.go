package cli_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// limiter is an engine that can pause, resume and limit.
type limiter struct {
	fake
	asked   []any
	results []engine.PauseResult
	limits  engine.Limits
}

func (l *limiter) Pause(_ context.Context, r engine.PauseRequest) ([]engine.PauseResult, error) {
	l.asked = append(l.asked, r)
	return l.results, nil
}

func (l *limiter) Resume(_ context.Context, r engine.PauseRequest) ([]engine.PauseResult, error) {
	l.asked = append(l.asked, fmt.Sprintf("resume %+v", r))
	return l.results, nil
}

func (l *limiter) Limits(_ context.Context, r engine.LimitsRequest) (engine.Limits, error) {
	l.asked = append(l.asked, r)
	return l.limits, nil
}

func TestPause(t *testing.T) {
	paused := []engine.PauseResult{{Name: "a", State: sandbox.Paused, Changed: true}, {Name: "b", State: sandbox.Stopped}}
	for _, c := range []struct {
		args    []string
		results []engine.PauseResult
		code    int
		stdout  string
	}{
		{[]string{"pause", "a"}, paused[:1], 0, "paused a\n"},
		{[]string{"pause", "a"}, []engine.PauseResult{{Name: "a", State: sandbox.Paused}}, 0, "a was paused already\n"},
		{[]string{"pause", "--all-envs"}, paused, 0, "paused a\n"},
		{[]string{"resume", "--all-repos"}, paused, 0, "resumed a\n"},
		{[]string{"resume", "b"}, paused[1:], 0, "b was not paused\n"},
		{[]string{"pause", "--all-envs"}, nil, 0, ""},
		{[]string{"pause"}, nil, 2, ""},
		{[]string{"pause", "a", "--all-envs"}, nil, 2, ""},
		{[]string{"pause", "a", "b"}, paused, 0, "paused a\n"},
		{[]string{"pause", "x*"}, nil, 3, ""},
	} {
		here := fake{list: func(string, bool) ([]engine.Info, error) { return []engine.Info{info("a"), info("b")}, nil }}
		got := lb(t, &limiter{fake: here, results: c.results}, "", c.args...)
		if got.Code != c.code || got.Stdout != c.stdout {
			t.Errorf("%q: %+v, want code %d and %q", c.args, got, c.code, c.stdout)
		}
	}
	l := &limiter{results: paused}
	lb(t, l, "", "-C", "/src", "pause", "--all-repos", "--all-envs")
	lb(t, l, "", "-C", "/src", "resume", "a")
	if diff := cmp.Diff([]any{
		engine.PauseRequest{Dir: "/src", AllEnvs: true, AllRepos: true}, "resume {Dir:/src Name:a Names:[] AllEnvs:false AllRepos:false}",
	}, l.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	golden(t, "json/pause.json", lb(t, &limiter{results: paused}, "", "pause", "--all-envs", "--json").Stdout)
}

func TestLimits(t *testing.T) {
	l := &limiter{limits: engine.Limits{Name: "a", Running: true, IdlePause: 10 * time.Minute, Limits: []sandbox.Limit{
		{Name: "cpus", Value: "2", From: "repository"},
		{Name: "memory", Value: "4GiB", By: "cgroup v2", From: "command"},
		{Name: "disk", Value: "none", From: "user"},
	}}}
	golden(t, "text/limits.txt", lb(t, l, "", "-C", "/src", "limits", "a", "memory=4GiB", "disk=none").Stdout)
	golden(t, "json/limits.json", lb(t, l, "", "limits", "a", "--json").Stdout)
	want := engine.LimitsRequest{Dir: "/src", Name: "a", Set: []string{"memory=4GiB", "disk=none"}}
	if diff := cmp.Diff(want, l.asked[0]); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if got := lb(t, l, "", "limits"); got.Code != 2 {
		t.Errorf("without a name: %+v", got)
	}
}
