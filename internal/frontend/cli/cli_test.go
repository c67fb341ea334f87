package cli_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frontend/cli"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fake is an engine of functions; a use case that a test does not expect
// panics on the embedded nil interface.
type fake struct {
	init               func(engine.InitRequest) (engine.Initialized, error)
	environments       []engine.Environment
	goldens            []engine.Golden
	environmentShell   func(engine.EnvironmentRequest) (engine.ExecResult, error)
	deleteEnvironments func(engine.EnvironmentDeletion) ([]engine.Environment, error)

	running []engine.Work // of milestone and stop
	trash   []engine.Trashed
	refused []engine.Refusal
	found   bool // each program inside

	cli.UseCases
	create    func(context.Context, engine.CreateRequest) (engine.Creation, error)
	exec      func(context.Context, engine.ExecRequest) (engine.ExecResult, error)
	read      func(dir, name, path string, w io.Writer) error
	write     func(engine.WriteRequest) (*sandbox.Iteration, []string, error)
	copy      func(engine.CopyRequest) (*sandbox.Iteration, []string, error)
	milestone func(dir, name, message string) (*sandbox.Iteration, error)
	update    func(engine.UpdateRequest) (engine.Updated, error)
	list      func(dir string, all bool) ([]engine.Info, error)
	exists    func(dir, name string) (bool, error)
	status    func(dir, name string) (engine.Status, error)
	log       func(dir, name string) ([]sandbox.Iteration, error)
	diff      func(engine.DiffRequest) (int, error)
	merge     func(engine.MergeRequest) (engine.MergeResult, error)
	delete    func(engine.DeleteRequest) (engine.DeleteResult, error)
	stop      func(dir, name string) error
	start     func(dir, name string, allowDegraded bool) (engine.StartResult, error)
	trust     func(dir string) (engine.TrustResult, error)
	settings  engine.Configuration
	doctor    func() (engine.Report, error)
	samples   func() ([]engine.Sample, error)
}

func (f *fake) FindProgram(context.Context, engine.Place, string, bool) (bool, error) {
	return f.found, nil
}

func (f *fake) Init(_ context.Context, r engine.InitRequest) (engine.Initialized, error) {
	return f.init(r)
}

func (f *fake) EnvironmentShell(_ context.Context, r engine.EnvironmentRequest) (engine.ExecResult, error) {
	return f.environmentShell(r)
}

func (f *fake) Environments(context.Context) ([]engine.Environment, error) {
	return f.environments, nil
}

func (f *fake) DeleteEnvironments(_ context.Context, r engine.EnvironmentDeletion) ([]engine.Environment, error) {
	return f.deleteEnvironments(r)
}

func (f *fake) Configuration(context.Context, string) (engine.Configuration, error) {
	return f.settings, nil
}

func (f *fake) Within(string) string { return "" }

func (f *fake) AwaitServices(context.Context, string, string, time.Duration) ([]engine.NotReady, error) {
	return nil, nil
}

func (f *fake) Create(ctx context.Context, r engine.CreateRequest) (engine.Creation, error) {
	return f.create(ctx, r)
}

func (f *fake) Exec(ctx context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
	return f.exec(ctx, r)
}

func (f *fake) Read(_ context.Context, dir, name, path string, w io.Writer) error {
	return f.read(dir, name, path, w)
}

func (f *fake) Write(_ context.Context, r engine.WriteRequest) (*sandbox.Iteration, []string, error) {
	return f.write(r)
}

func (f *fake) Copy(_ context.Context, r engine.CopyRequest) (*sandbox.Iteration, []string, error) {
	return f.copy(r)
}

func (f *fake) Milestone(_ context.Context, dir, name, message string) (engine.Milestoned, error) {
	it, err := f.milestone(dir, name, message)
	return engine.Milestoned{Iteration: it, Running: f.running}, err
}

func (f *fake) Update(_ context.Context, r engine.UpdateRequest) (engine.Updated, error) {
	return f.update(r)
}

func (f *fake) Refused(context.Context, engine.Place, time.Time) ([]engine.Refusal, error) {
	return f.refused, nil
}

func (f *fake) ListHere(ctx context.Context, dir string) ([]engine.Info, []engine.Info, error) {
	infos, err := f.List(ctx, dir, false)
	return infos, nil, err
}

func (f *fake) List(_ context.Context, dir string, all bool) ([]engine.Info, error) {
	return f.list(dir, all)
}

func (f *fake) Goldens(context.Context, string) ([]engine.Golden, error) { return f.goldens, nil }

func (f *fake) Exists(_ context.Context, dir, name string) (bool, error) { return f.exists(dir, name) }

func (f *fake) Status(_ context.Context, dir, name string) (engine.Status, error) {
	return f.status(dir, name)
}

func (f *fake) Log(_ context.Context, dir, name string) ([]sandbox.Iteration, error) {
	return f.log(dir, name)
}

func (f *fake) Diff(_ context.Context, r engine.DiffRequest) (int, error) { return f.diff(r) }

func (f *fake) Merge(_ context.Context, r engine.MergeRequest) (engine.MergeResult, error) {
	return f.merge(r)
}

func (f *fake) Delete(_ context.Context, r engine.DeleteRequest) (engine.DeleteResult, error) {
	return f.delete(r)
}

func (f *fake) Trash(context.Context, string, bool) ([]engine.Trashed, error) { return f.trash, nil }

func (f *fake) Restore(_ context.Context, _, name string) (engine.Restored, []string, error) {
	return engine.Restored{Name: name, Tip: "8888888bbbb", Files: name == "whole"}, nil, nil
}

func (f *fake) EmptyTrash(_ context.Context, r engine.EmptyRequest) ([]engine.Trashed, error) {
	if r.Confirm != nil {
		if yes, err := r.Confirm(f.trash); err != nil || !yes {
			return nil, err
		}
	}
	return f.trash, nil
}

func (f *fake) Stop(_ context.Context, r engine.StopRequest) (engine.StopResult, error) {
	return engine.StopResult{Name: r.Name, Ended: f.running}, f.stop(r.Dir, r.Name)
}

func (f *fake) Install(_ context.Context, r engine.InstallRequest) (engine.Installation, error) {
	return engine.Installation{Name: r.Name, Packages: r.Packages, InForce: r.Stop || len(f.running) == 0}, nil
}

func (f *fake) Start(_ context.Context, dir, name string, allowDegraded bool) (engine.StartResult, error) {
	return f.start(dir, name, allowDegraded)
}

func (f *fake) Trust(_ context.Context, dir string) (engine.TrustResult, error) { return f.trust(dir) }

func (f *fake) Doctor(context.Context, string) (engine.Report, error) { return f.doctor() }

// outcome is the result of a command line.
type outcome struct {
	Code   int
	Stdout string
	Stderr string
}

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// lb runs a command line against a fake, with stdin as its input.
func lb(t *testing.T, e cli.UseCases, stdin string, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Session{
		Engine: e, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr, Now: now,
		Env: map[string]string{"TERM": "xterm", "SHELL": "/usr/bin/zsh"},
	}.Run(t.Context(), args...)
	return outcome{code, stdout.String(), stderr.String()}
}

func wantOutcome(t *testing.T, got, want outcome) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func here(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func info(name string) engine.Info {
	return engine.Info{
		Name: name, Branch: name, Base: "1111111aaaa", Head: "2222222bbbb", State: sandbox.Running, Driver: "namespace",
		Isolation: sandbox.IsolationFull, Network: "none", Repository: "/src/app", CreatedAt: now.Add(-3 * time.Minute),
		ID: "id-" + name, Iterations: 4,
	}
}

var errNotFound = fault.New(fault.NotFound, "cannot find a sandbox called %q", "fix").WithHint("litterbox list")

func processes() []wire.Process {
	return []wire.Process{{PID: 12, Parent: 1, Group: 12, Command: "python3 -m http.server\x07"}}
}
