package engine_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// A use case looks its sandbox up once, by itself and under the entry of the
// audit log that a frontend has opened for it.
func TestEachUseCaseLooksUpOnce(t *testing.T) {
	type use struct {
		name string
		run  func(context.Context, *world) error
	}
	uses := []use{ // one after the other in one sandbox
		{name: "exec", run: func(ctx context.Context, w *world) error {
			_, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "fix", Argv: []string{"true"}})
			return err
		}},
		{name: "write", run: func(ctx context.Context, w *world) error {
			_, _, err := w.Write(ctx, engine.WriteRequest{Dir: w.dir, Name: "fix", Path: "b.txt", Content: strings.NewReader("two\n")})
			return err
		}},
		{name: "read", run: func(ctx context.Context, w *world) error { return w.Read(ctx, w.dir, "fix", "a.txt", io.Discard) }},
		{name: "log", run: func(ctx context.Context, w *world) error { _, err := w.Log(ctx, w.dir, "fix"); return err }},
		{name: "diff", run: func(ctx context.Context, w *world) error {
			_, err := w.Diff(ctx, engine.DiffRequest{Dir: w.dir, Name: "fix", Stdout: io.Discard, Stderr: io.Discard})
			return err
		}},
		{name: "milestone", run: func(ctx context.Context, w *world) error {
			_, err := w.Milestone(ctx, w.dir, "fix", "Count")
			return err
		}},
		{name: "pause", run: func(ctx context.Context, w *world) error {
			_, err := w.Pause(ctx, engine.PauseRequest{Dir: w.dir, Name: "fix"})
			return err
		}},
		{name: "resume", run: func(ctx context.Context, w *world) error {
			_, err := w.Resume(ctx, engine.PauseRequest{Dir: w.dir, Name: "fix"})
			return err
		}},
		{name: "stop", run: func(ctx context.Context, w *world) error {
			_, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "fix"})
			return err
		}},
		{name: "start", run: func(ctx context.Context, w *world) error {
			_, err := w.Start(ctx, w.dir, "fix", false)
			return err
		}},
		{name: "limits", run: func(ctx context.Context, w *world) error {
			_, err := w.Limits(ctx, engine.LimitsRequest{Dir: w.dir, Name: "fix", Set: []string{"memory=64MiB"}})
			return err
		}},
		{name: "allow", run: func(ctx context.Context, w *world) error {
			_, err := w.ChangePolicy(ctx, engine.PolicyRequest{Dir: w.dir, Name: "fix", Rules: []string{"example.com"}})
			return err
		}},
		{name: "snapshot", run: func(ctx context.Context, w *world) error {
			_, err := w.TakeSnapshot(ctx, w.dir, "fix", "good")
			return err
		}},
		{name: "restore", run: func(ctx context.Context, w *world) error {
			_, err := w.RestoreSnapshot(ctx, engine.RestoreRequest{Dir: w.dir, Name: "fix", Snapshot: "good", Stop: true})
			return err
		}},
		{name: "sync-back", run: func(ctx context.Context, w *world) error {
			_, err := w.SyncBack(ctx, engine.SyncBackRequest{Place: engine.Place{Dir: w.dir, Name: "fix"}})
			return err
		}},
		{name: "service", run: func(ctx context.Context, w *world) error {
			_, err := w.Service(ctx, engine.ServiceRequest{Dir: w.dir, Name: "fix", Action: "status"})
			return err
		}},
		{name: "apply", run: func(ctx context.Context, w *world) error {
			_, err := w.Merge(ctx, engine.MergeRequest{Dir: w.dir, Name: "fix"})
			return err
		}},
		{name: "hold", run: func(ctx context.Context, w *world) error {
			_, _, err := w.Hold(ctx, w.dir, "fix", engine.Actor{Via: "mcp", Session: "one"})
			return err
		}},
		{name: "delete", run: func(ctx context.Context, w *world) error {
			_, err := w.Delete(ctx, engine.DeleteRequest{Dir: w.dir, Name: "fix", Force: true, Stop: true})
			return err
		}},
	}
	for _, by := range []string{"itself", "a frontend"} {
		t.Run("by "+by, func(t *testing.T) {
			w, ctx := begun(t)
			w.put(t, ctx, "a.txt", "one\n")
			var looks atomic.Int64
			w.store.Looked = func(name string) {
				if name == "fix" {
					looks.Add(1)
				}
			}
			for _, use := range uses {
				looks.Store(0)
				within, call := ctx, (*engine.Call)(nil)
				if by == "a frontend" {
					var err error
					if within, call, err = w.Begin(ctx, engine.Actor{Via: "mcp"}, engine.Action{Name: use.name, Dir: w.dir, Sandbox: "fix"}); err != nil {
						t.Fatal(err)
					}
				}
				err := use.run(within, w)
				n := looks.Load()
				if err != nil {
					t.Fatalf("%s: %v", use.name, err)
				}
				if err := call.End(engine.Outcome{}); err != nil {
					t.Error(err)
				}
				if n != 1 {
					t.Errorf("%s looked the sandbox up %d times", use.name, n)
				}
			}
		})
	}
}

// A name that was given to another sandbox while a call waited is looked up again.
func TestALookUpGrowsOld(t *testing.T) {
	w, ctx := begun(t)
	within, call, err := w.Begin(ctx, engine.Actor{Via: "mcp"}, engine.Action{Name: "write", Dir: w.dir, Sandbox: "fix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Rename(ctx, engine.RenameRequest{Dir: w.dir, Name: "fix", New: "old"}); err != nil {
		t.Fatal(err)
	}
	made, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: "fix"})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = w.Write(within, engine.WriteRequest{Dir: w.dir, Name: "fix", Path: "a.txt", Content: strings.NewReader("one\n")})
	if err := call.End(engine.Outcome{Err: err}); err != nil {
		t.Fatal(err)
	}
	if got := gittest.Git(t, w.dir, "show", made.Branch+":a.txt"); got != "one" {
		t.Errorf("the new sandbox has %q", got)
	}
}

// TestEntriesUseWhatWasFound follows each function that finds a sandbox: the entry
// that it opens in the audit log is of that sandbox, and looks nothing up.
func TestEntriesUseWhatWasFound(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if !ok {
				continue
			}
			finds, records, begins, given := false, false, false, false
			ast.Inspect(function, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.SelectorExpr:
					finds = finds || node.Sel.Name == "find" || node.Sel.Name == "findAny"
					records = records || node.Sel.Name == "record" && isEngine(node.X)
					begins = begins || node.Sel.Name == "Begin"
				case *ast.KeyValueExpr:
					key, ok := node.Key.(*ast.Ident)
					given = given || ok && key.Name == "found"
				}
				return true
			})
			if finds {
				seen++
			}
			if finds && (records || begins && !given) {
				t.Errorf("%s: %s finds a sandbox and looks it up again for the audit log: let recordIn have what was found", path, function.Name.Name)
			}
		}
	}
	if seen == 0 {
		t.Error("this test sees nothing")
	}
}

func isEngine(x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	return ok && name.Name == "e"
}
