package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// configured is a virtual machine that is only told what it gets.
type configured struct {
	VirtualMachine
	settings []machine.VMSettings
}

func (*configured) Driver() string { return "shared" }
func (*configured) Single() string { return "single" }
func (c *configured) Configure(s machine.VMSettings) error {
	c.settings = append(c.settings, s)
	return nil
}

// The machine of live environments gets what the human has configured, and is left to
// the keeper.
func TestVirtualMachineOfEnvironmentsIsConfigured(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	config := filepath.Join(home, ".config", "litterbox")
	err := os.MkdirAll(config, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(config, "config.toml"), []byte("[vm]\nimage = \"ubuntu-24.04\"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	vm := &configured{}
	e := New(Options{Store: &store.Store{Root: t.TempDir()}, VM: vm, Drivers: driver.NewSet(driver.Entry{Name: "shared", Live: "env"}, driver.Entry{Name: "env"}, driver.Entry{Name: "other"})})
	ctx := caller.For(context.Background(), caller.Caller{Home: home})
	for _, name := range []string{"other", "env"} {
		if err := e.bringVM(ctx, name, ""); err != nil {
			t.Fatal(err)
		}
	}
	if len(vm.settings) != 1 || vm.settings[0].Image != "ubuntu-24.04" {
		t.Errorf("it was given %+v", vm.settings)
	}
}
