package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// vmFake has a virtual machine with two sandboxes, of which one runs.
type vmFake struct {
	fake
	vm   engine.VM
	done []string
	log  string
}

func newVMFake() *vmFake {
	return &vmFake{vm: engine.VM{
		VM: machine.VM{
			Name: "litterbox", Driver: "lima", State: machine.VMRunning, Type: "vz", Architecture: "aarch64", CPUs: 4, Memory: 8 << 30, Disk: 30 << 30,
			Version: "2.2.0", Dir: "/home/a/.lima/litterbox",
		},
		Sandboxes: []string{"one", "two"}, Running: []string{"two"},
		Singles: []machine.VM{
			{Name: "litterbox-golden", Driver: "lima-vm", State: machine.VMStopped, CPUs: 4, Memory: 8 << 30},
			{Name: "litterbox-alone-0123abcd", Driver: "lima-vm", Sandbox: "alone", State: "broken", Trouble: "its \x1b[2Jdisk", CPUs: 2, Memory: 1 << 30},
		},
	}}
}

func (f *vmFake) ListMachines(context.Context) ([]engine.Machine, error) { return nil, nil }

func (f *vmFake) SingleVMs(context.Context) ([]machine.VM, error) { return f.vm.Singles, nil }

func (f *vmFake) VMStatus(context.Context) (engine.VM, error) { return f.vm, nil }

func (f *vmFake) StartVM(context.Context, string) (engine.VM, error) {
	f.done, f.vm.State = append(f.done, "start"), machine.VMRunning
	return f.vm, nil
}

func (f *vmFake) change(verb string, r engine.VMRequest) (engine.VM, error) {
	if r.Confirm != nil {
		if yes, err := r.Confirm(f.vm); err != nil || !yes {
			return f.vm, err
		}
	}
	f.done = append(f.done, verb)
	return f.vm, nil
}

func (f *vmFake) StopVM(_ context.Context, r engine.VMRequest) (engine.VM, error) {
	return f.change("stop", r)
}

func (f *vmFake) RecreateVM(_ context.Context, r engine.VMRequest) (engine.VM, error) {
	return f.change("recreate", r)
}

func (f *vmFake) VMLogs(context.Context) ([]string, error) { return []string{f.log}, nil }

func (f *vmFake) VMShell(_ context.Context, _ string, argv []string) (command, env []string, err error) {
	return append([]string{"/bin/sh", "-c", `echo "$0 $*"; exit 3`}, argv...), []string{"PATH=/usr/bin:/bin"}, nil
}

func TestVirtualMachine(t *testing.T) {
	t.Parallel()
	f := newVMFake()
	f.log = filepath.Join(t.TempDir(), "serial.log")
	if err := os.WriteFile(f.log, []byte("first\nsecond\n\x1b[2Jthird\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args                   []string
		code                   int
		stdout, stderr, absent string
		done                   string
	}{
		{args: []string{"status"}, stdout: "4 processors, 8.0 GiB of memory"},
		{args: []string{"status", "--json"}, stdout: `"running": [`},
		{args: []string{"status", "--json"}, stdout: `"sandbox": "alone"`},
		{args: []string{"status"}, stdout: "litterbox-alone-0123abcd", absent: "\x1b"},
		{args: []string{"list"}, stdout: "alone", absent: "no machines"},
		{args: []string{"start"}, stdout: "running", done: "start"},
		{args: []string{"stop"}, code: 7, stderr: "ends sandboxes that run: two"},
		{args: []string{"stop", "--yes"}, done: "stop"},
		{args: []string{"recreate"}, code: 7, stderr: "homes of the sandboxes one, two"},
		{args: []string{"recreate", "--yes"}, done: "recreate"},
		{args: []string{"logs", "-n", "2"}, stdout: "second", absent: "first"},
		{args: []string{"logs"}, stdout: "third", absent: "\x1b"},
		{args: []string{"shell", "--", "uname", "-a"}, code: 3, stdout: "uname -a"},
		{args: []string{"frobnicate"}, code: 2, stderr: "has no command"},
	} {
		f.done = nil
		out := lb(t, f, "", append([]string{"machine"}, test.args...)...)
		code, stdout, stderr := out.Code, out.Stdout, out.Stderr
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || test.absent != "" && strings.Contains(stdout, test.absent) {
			t.Errorf("%q: %d\n%s\n%s", test.args, code, stdout, stderr)
		}
		if got := strings.Join(f.done, " "); got != test.done {
			t.Errorf("%q did %q", test.args, got)
		}
	}
	f.vm.State = machine.VMStopped
	if out := lb(t, f, "", "machine", "status"); out.Code != 8 {
		t.Errorf("the status of one that does not run: %d", out.Code)
	}
}
