package engine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// One process serves two repositories, of which one is strict. Whatever it reads
// from one in between, the other keeps its own durability.
func TestDurabilityIsTheSandboxsOwn(t *testing.T) {
	t.Parallel()
	records, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := caller.For(t.Context(), caller.Caller{Home: t.TempDir()})
	e := New(Options{Store: records, Drivers: driver.NewSet(driver.Entry{Name: "none", Make: func() driver.Driver { return struct{ driver.Driver }{} }})})
	var repositories [2]*sandbox.Sandbox // plain and strict
	for n, text := range []string{"durability = \"normal\"\n", "durability = \"strict\"\n"} {
		top := filepath.Join(t.TempDir(), "project")
		if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", top).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.WriteFile(filepath.Join(top, config.RepositoryFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		record := &sandbox.Sandbox{Name: "fix", Repository: top, GitDir: filepath.Join(top, ".git"), Driver: "none", State: sandbox.Stopped}
		found, err := e.settings(ctx, top, record.GitDir)
		if err != nil {
			t.Fatal(err)
		}
		record.Strict = found.config.Durability == config.Strict
		if err := e.claim(ctx, record); err != nil {
			t.Fatal(err)
		}
		repositories[n] = record
	}
	check := func(p *place, strict bool) {
		t.Helper()
		ctx, call, err := e.record(apart(ctx), "exec", p.record.Repository, "fix", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := openCall(ctx).log.Strict; got != strict {
			t.Errorf("the audit log of %q is strict: %t", p.record.Repository, got)
		}
		if err := call.end("", nil, nil); err != nil {
			t.Error(err)
		}
		if order := e.order(p, driver.Spec{}, nil); order.Strict != strict || p.store.Strict() != strict || p.store.Trash().Strict() != strict {
			t.Errorf("%q: the keeper's order says %t, the store %t, its trash %t", p.record.Repository, order.Strict, p.store.Strict(), p.store.Trash().Strict())
		}
	}
	var places [2]*place
	for n, record := range repositories {
		if places[n], err = e.open(ctx, record); err != nil {
			t.Fatal(err)
		}
	}
	for n, other := range []int{1, 0} {
		// The same steps as a concurrent call on the other repository.
		if _, err := e.settings(ctx, repositories[other].Repository, repositories[other].GitDir); err != nil {
			t.Fatal(err)
		}
		if _, err := e.open(ctx, repositories[other]); err != nil {
			t.Fatal(err)
		}
		check(places[n], n == 1)
		check(places[other], other == 1)
	}
	if e.Store.Strict() {
		t.Error("the store of the process is strict")
	}
	// A sandbox that is made under a call: the call learns about it.
	ctx, call, err := e.record(context.Background(), "create", repositories[1].Repository, "new", nil)
	if err != nil {
		t.Fatal(err)
	}
	if durably(ctx, true); !call.log.Strict {
		t.Error("the call does not know that its sandbox is strict")
	}
	if err := call.end("", nil, nil); err != nil {
		t.Error(err)
	}
}
