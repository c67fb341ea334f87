package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/fake"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/keeper/inprocess"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// vms records what the engine asks of virtual machines.
type vms struct{ done []string }

func (*vms) Driver() string                     { return "shared" }
func (*vms) Single() string                     { return "single" }
func (*vms) Configure(machine.VMSettings) error { return nil }
func (v *vms) Start(context.Context, func(string)) error {
	v.done = append(v.done, "start")
	return nil
}

func (v *vms) StartSingle(_ context.Context, stateDir string, _ func(string)) error {
	v.done = append(v.done, "start that of "+filepath.Base(stateDir))
	return nil
}

func (v *vms) Singles(context.Context) ([]machine.VM, error) {
	return []machine.VM{{Name: "golden"}, {Name: "its", Sandbox: v.done[len(v.done)-1][len("start that of "):]}}, nil
}
func (*vms) Status(context.Context) (machine.VM, error)   { return machine.VM{}, nil }
func (*vms) Stop(context.Context, func(string)) error     { return nil }
func (*vms) Recreate(context.Context, func(string)) error { return nil }
func (*vms) Logs(context.Context) ([]string, error)       { return nil, nil }
func (*vms) Shell(context.Context, []string) (command, env []string, err error) {
	return nil, nil, nil
}

// vm.isolation decides which virtual machine a sandbox of the driver gets.
func TestVirtualMachineOfItsOwn(t *testing.T) {
	w := newWorld(t)
	made := &vms{}
	d := fake.New(w.machine, fake.Options{})
	drivers := driver.NewSet(
		driver.Entry{Name: d.Name(), Make: func() driver.Driver { return d }, Default: true},
		driver.Entry{Name: "shared", Make: func() driver.Driver { return named{d, "shared"} }},
		driver.Entry{Name: "single", Make: func() driver.Driver { return named{d, "single"} }},
	)
	keepers := &inprocess.Keepers{Drivers: drivers}
	t.Cleanup(keepers.Close)
	e := engine.New(engine.Options{Store: w.store, Drivers: drivers, Keepers: keepers, Clock: w.clock.of(), VM: made})
	create := func(name, chosen string) string {
		t.Helper()
		info, err := e.Create(gittest.Context(t), engine.CreateRequest{Dir: w.dir, Name: name, Driver: chosen})
		if err != nil {
			t.Fatal(err)
		}
		return info.Driver
	}
	if got := create("one", "shared"); got != "shared" {
		t.Errorf("unless set: %q", got)
	}
	config := filepath.Join(os.Getenv("HOME"), ".config", "litterbox")
	if err := os.MkdirAll(config, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "config.toml"), []byte("[vm]\nisolation = \"vm\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := create("two", "shared"); got != "single" {
		t.Errorf("with vm.isolation: %q", got)
	}
	if got := create("three", ""); got != d.Name() {
		t.Errorf("another driver: %q", got)
	}
	ids, err := w.store.Names(filepath.Join(w.dir, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"start", "start that of " + ids["two"]}, made.done); diff != "" {
		t.Error(diff)
	}
	all, err := e.SingleVMs(t.Context())
	if err != nil || len(all) != 2 || all[0].Sandbox != "" || all[1].Sandbox != "two" {
		t.Errorf("%+v, %v", all, err)
	}
}
