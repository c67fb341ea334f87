package cli_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// recorder is a fake that writes down the order of calls.
func recorder(exists func() bool, createErr, execErr error, code int) (*fake, *[]string) {
	calls := &[]string{}
	did := func(call string) { *calls = append(*calls, call) }
	return &fake{
		exists: func(_, name string) (bool, error) {
			did("exists " + name)
			return exists(), nil
		},
		create: func(_ context.Context, r engine.CreateRequest) (engine.Creation, error) {
			did("create " + r.Name)
			return engine.Creation{Info: info("fix-it"), Notes: []string{"2 uncommitted changes stay out"}}, createErr
		},
		exec: func(_ context.Context, r engine.ExecRequest) (engine.ExecResult, error) {
			did("exec " + r.Argv[0])
			return engine.ExecResult{Exit: wire.Exit{Code: code}}, execErr
		},
		delete: func(r engine.DeleteRequest) (engine.DeleteResult, error) {
			did("delete")
			if !r.Force {
				return engine.DeleteResult{}, fault.New(fault.Denied, "cannot delete")
			}
			return engine.DeleteResult{Name: "fix-it", Tip: "3333333cccc", Trash: "refs/litterbox/trash/fix-it/1"}, nil
		},
	}, calls
}

func TestRun(t *testing.T) {
	taken := fault.New(fault.AlreadyExists, "cannot create fix-it: the branch exists")
	never, always := func() bool { return false }, func() bool { return true }
	later := func() func() bool {
		asked := 0
		return func() bool { asked++; return asked > 1 }
	}
	const stayOut = "note: 2 uncommitted changes stay out\n"
	const kept = "note: deleted fix-it; its last commit 3333333 stays at refs/litterbox/trash/fix-it/1\n"
	for _, c := range []struct {
		name               string
		exists             func() bool
		createErr, execErr error
		args               []string
		want               outcome
		calls              []string
	}{
		{"missing", never, nil, nil, nil, outcome{5, "", stayOut}, []string{"exists Fix it", "create Fix it", "exec a"}},
		{"existing", always, nil, nil, nil, outcome{5, "", ""}, []string{"exists Fix it", "exec a"}},
		{"another run was faster", later(), taken, nil, nil, outcome{5, "", ""}, []string{"exists Fix it", "create Fix it", "exists Fix it", "exec a"}},
		{"a branch has the name", never, taken, nil, nil, outcome{125, "", "litterbox: cannot create fix-it: the branch exists\n"}, []string{"exists Fix it", "create Fix it", "exists Fix it"}},
		{"--rm", never, nil, nil, []string{"--rm"}, outcome{5, "", stayOut + kept}, []string{"exists Fix it", "create Fix it", "exec a", "delete"}},
		{"--rm after a failure of ours", always, nil, fault.New(fault.Unavailable, "cannot reach it"), []string{"--rm"}, outcome{125, "", kept + "litterbox: cannot reach it\n"}, []string{"exists Fix it", "exec a", "delete"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, calls := recorder(c.exists, c.createErr, c.execErr, 5)
			args := append(append([]string{"run", "Fix it"}, c.args...), "--", "a")
			wantOutcome(t, lb(t, e, "", args...), c.want)
			if diff := cmp.Diff(c.calls, *calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunSaysWhenItLeavesASandboxBehind(t *testing.T) {
	e, _ := recorder(func() bool { return true }, nil, nil, 0)
	e.delete = func(engine.DeleteRequest) (engine.DeleteResult, error) {
		return engine.DeleteResult{}, fault.New(fault.Unavailable, "cannot delete fix-it")
	}
	wantOutcome(t, lb(t, e, "", "run", "fix-it", "--rm", "--", "a"), outcome{125, "", "litterbox: cannot delete fix-it\n"})
}
