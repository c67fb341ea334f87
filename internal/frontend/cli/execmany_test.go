package cli_test

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// TestExecMany counts failures of commands and of litterbox alike, prints whole
// lines of each, and begins no more at once than it was told.
func TestExecMany(t *testing.T) {
	s, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	running, most := 0, 0
	e := &many{log: engine.New(engine.Options{Store: s})}
	e.list = func(string, bool) ([]engine.Info, error) { return []engine.Info{info("a"), info("b"), info("c")}, nil }
	e.exec = func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		defer func() {
			mu.Lock()
			running--
			mu.Unlock()
		}()
		_, _ = io.WriteString(r.Streams.Stdout, "first of "+r.Name+"\nhalf\x1b[2J")
		if r.Name == "b" {
			return engine.ExecResult{}, fault.New(fault.Unavailable, "cannot reach b").WithHint("litterbox stop b")
		}
		return engine.ExecResult{Exit: wire.Exit{Code: map[string]int{"a": 0, "c": 3}[r.Name]}}, nil
	}
	got := lb(t, e, "", "exec", "--all", "--parallel", "2", "--output", t.TempDir(), "--", "true")
	if got.Code != 2 || most > 2 {
		t.Errorf("code %d for 2 failures, %d at once; %s", got.Code, most, got.Stderr)
	}
	for _, want := range []string{"[a] first of a\n", "[c] half", "\na     0 ", "\nb     failed ", "\nc     3 "} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, got.Stdout)
		}
	}
	if strings.Contains(got.Stdout, "\x1b") || !strings.Contains(got.Stderr, "b: cannot reach b; try: litterbox stop b") {
		t.Errorf("%q\n%s", got.Stdout, got.Stderr)
	}
	for _, args := range [][]string{
		{"exec", "a", "--parallel", "2", "--", "true"}, {"exec", "--all"}, {"exec", "--all", "--ask", "--", "true"}, {"exec", "x*", "--parallel", "0", "--", "true"},
	} {
		if got := lb(t, e, "", args...); got.Code != 125 || got.Stdout != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// many is a fake with the logs of a real engine.
type many struct {
	fake
	log *engine.Engine
}

func (m *many) NewCommandLog(ctx context.Context, info engine.Info, dir string, env []string) (*engine.CommandLog, error) {
	return m.log.NewCommandLog(ctx, info, dir, env)
}
