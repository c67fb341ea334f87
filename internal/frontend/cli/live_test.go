package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

func environment() engine.Environment {
	return engine.Environment{
		Name: "cool-app-69cc", Path: "/Users/alice/My Projects/cool-app", State: sandbox.Running, Commands: 2, Driver: "namespace",
		Isolation: sandbox.IsolationFull, Network: "none", CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ID: "cool-app-69cc-01234567",
	}
}

func TestEnvShell(t *testing.T) {
	for _, c := range []struct {
		args     []string
		path     string
		argv     []string
		writable bool
		code     int
	}{
		{args: []string{"--", "make", "-j2"}, path: here(t), argv: []string{"make", "-j2"}, code: 7},
		{args: []string{"sub", "--writable-git", "--", "true"}, path: filepath.Join(here(t), "sub"), argv: []string{"true"}, writable: true, code: 7},
		{args: []string{"/other", "--", "true"}, path: "/other", argv: []string{"true"}, code: 7},
		{args: []string{"a", "b"}, code: 125},
		{args: []string{"a", "--"}, code: 125},
	} {
		var got engine.EnvironmentRequest
		e := &fake{environmentShell: func(r engine.EnvironmentRequest) (engine.ExecResult, error) {
			got = r
			return engine.ExecResult{Exit: wire.Exit{Code: 7}}, nil
		}}
		if out := lb(t, e, "", append([]string{"env", "shell"}, c.args...)...); out.Code != c.code {
			t.Errorf("%q exits %d: %s", c.args, out.Code, out.Stderr)
			continue
		}
		if got.Path != c.path || got.WritableGit != c.writable || !cmp.Equal(got.Exec.Argv, c.argv) {
			t.Errorf("%q asks for %+v", c.args, got)
		}
	}
}

// The document names the environment, as env list does.
func TestEnvShellNamesTheEnvironment(t *testing.T) {
	e := &fake{environmentShell: func(engine.EnvironmentRequest) (engine.ExecResult, error) {
		return engine.ExecResult{Environment: "cool-app-69cc"}, nil
	}}
	out := lb(t, e, "", "env", "shell", "--json", "--", "true")
	if want := `"name": "cool-app-69cc",`; out.Code != 0 || !strings.Contains(out.Stdout, want) {
		t.Errorf("without %s: %+v", want, out)
	}
}

func TestEnvList(t *testing.T) {
	e := &fake{environments: []engine.Environment{environment()}}
	golden(t, "text/env-list", lb(t, e, "", "env", "list").Stdout)
	golden(t, "json/env-list.json", lb(t, e, "", "env", "list", "--json").Stdout)
	wantOutcome(t, lb(t, &fake{}, "", "env", "list"), outcome{0, "", "note: no environments yet; make one with: litterbox env shell\n"})
}

func TestEnvDelete(t *testing.T) {
	var got engine.EnvironmentDeletion
	e := &fake{deleteEnvironments: func(r engine.EnvironmentDeletion) ([]engine.Environment, error) {
		got = r
		return []engine.Environment{environment()}, nil
	}}
	wantOutcome(t, lb(t, e, "", "env", "delete", "--stop"), outcome{0, "deleted cool-app-69cc; the files of /Users/alice/My Projects/cool-app stay\n", ""})
	if want := (engine.EnvironmentDeletion{Path: here(t), Stop: true}); got != want {
		t.Errorf("it asks for %+v", got)
	}
	golden(t, "json/env-delete.json", lb(t, e, "", "env", "delete", "--all", "--json").Stdout)
	if !got.All {
		t.Errorf("it asks for %+v", got)
	}
	if out := lb(t, e, "", "env", "delete", "--all", "x"); out.Code != 2 {
		t.Errorf("--all with a path: %+v", out)
	}
}

func TestEnvDeleteCompletes(t *testing.T) {
	e := &fake{environments: []engine.Environment{environment()}}
	const noFile, dirs = ":4\n", ":16\n" // cobra.ShellCompDirectiveNoFileComp and FilterDirs
	for typed, want := range map[string]string{"": "cool-app-69cc\n" + noFile, "coo": "cool-app-69cc\n" + noFile, "./": dirs, "~/pro": dirs} {
		if got := lb(t, e, "", "__complete", "env", "delete", typed).Stdout; got != want {
			t.Errorf("%q is completed to %q, want %q", typed, got, want)
		}
	}
}
