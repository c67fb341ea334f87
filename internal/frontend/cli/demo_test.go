package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// demoEngine answers the demo's requests; reachable makes its attacks succeed.
func demoEngine(reachable bool) *fake {
	gone := map[string]bool{}
	return &fake{
		create: func(_ context.Context, r engine.CreateRequest) (engine.Creation, error) {
			return engine.Creation{Info: info(r.Name)}, nil
		},
		exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
			if !strings.HasSuffix(r.Dir, "/project") {
				return engine.ExecResult{}, fmt.Errorf("works in %s", r.Dir)
			}
			if slices.Contains([]string{"ls", "touch", "git", "cat"}, r.Argv[0]) && !reachable {
				fmt.Fprintln(r.Streams.Stderr, "no such thing")
				return engine.ExecResult{Exit: wire.Exit{Code: 1}}, nil
			}
			return engine.ExecResult{}, nil
		},
		list: func(string, bool) ([]engine.Info, error) { return []engine.Info{info("greet"), info("tidy")}, nil },
		diff: func(r engine.DiffRequest) (int, error) {
			_, err := io.WriteString(r.Stdout, "+changed in "+r.Dir+"\n")
			return 0, err
		},
		merge: func(r engine.MergeRequest) (engine.MergeResult, error) {
			gone[r.Name] = true
			return engine.MergeResult{Landed: true, Deleted: true}, nil
		},
		delete: func(r engine.DeleteRequest) (engine.DeleteResult, error) {
			if gone[r.Name] {
				return engine.DeleteResult{}, errNotFound
			}
			gone[r.Name] = true
			return engine.DeleteResult{Name: r.Name, Tip: "8888888bbbb", Trash: "refs/litterbox/trash/" + r.Name}, nil
		},
	}
}

func TestDemo(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	got := lb(t, demoEngine(false), "", "demo")
	if got.Code != 0 || got.Stderr != "" {
		t.Errorf("exit code %d, stderr %q, stdout:\n%s", got.Code, got.Stderr, got.Stdout)
	}
	for _, want := range []string{"  $ litterbox create greet\n", "    created tidy on branch tidy", "+changed in ~/project\n", "  $ ./hello.sh\n    Hello, world!\n"} {
		if !strings.Contains(got.Stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, got.Stdout)
		}
	}
	if lines := strings.Count(got.Stdout, "\n"); lines >= 60 {
		t.Errorf("%d lines", lines)
	}
	wantEmpty(t, tmp)
}

func TestDemoSaysWhenASandboxIsNotTight(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	got := lb(t, demoEngine(true), "", "demo")
	if got.Code != 1 || !strings.Contains(got.Stderr, "touch /etc/litterbox-demo") || !strings.Contains(got.Stderr, "try: litterbox doctor") {
		t.Errorf("%+v", got)
	}
	wantEmpty(t, tmp)
}

func TestDemoStopsAndCleansUpAfterAFailure(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	e := demoEngine(false)
	var deleted []string
	e.create = func(context.Context, engine.CreateRequest) (engine.Creation, error) {
		return engine.Creation{}, errNotFound
	}
	e.delete = func(r engine.DeleteRequest) (engine.DeleteResult, error) {
		if r.Force {
			deleted = append(deleted, r.Name)
		}
		return engine.DeleteResult{}, errNotFound
	}
	got := lb(t, e, "", "demo")
	if got.Code != 3 || !strings.Contains(got.Stdout, "    litterbox: cannot find a sandbox") {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(deleted, []string{"greet", "tidy"}) {
		t.Errorf("deleted %q", deleted)
	}
	wantEmpty(t, tmp)
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "litterbox-demo-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestQuoted(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"ls", "-l", "a.b/c"}, "ls -l a.b/c"},
		{[]string{"sh", "-c", "echo 'a' $b"}, `sh -c 'echo '\''a'\'' $b'`},
		{[]string{"x", ""}, "x ''"},
	} {
		if got := cli.Quoted(c.words...); got != c.want {
			t.Errorf("Quoted(%q) = %s, want %s", c.words, got, c.want)
		}
	}
}
