package engine

import (
	"context"
	"errors"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// VirtualMachine is the virtual machine that sandboxes of one driver share, and the
// way to those of single sandboxes.
type VirtualMachine interface {
	// Driver is the one whose sandboxes are in it.
	Driver() string
	// Single is the driver whose sandboxes have virtual machines of their own.
	Single() string
	// Configure sets the resources that they get. It changes nothing that exists.
	Configure(machine.VMSettings) error
	// Singles are the virtual machines of single sandboxes, and what they are copies
	// of. Without any, no program is asked.
	Singles(ctx context.Context) ([]machine.VM, error)
	// StartSingle is Start for the one of a sandbox, by its state directory.
	StartSingle(ctx context.Context, stateDir string, note func(string)) error
	// Status says what it is; machine.VMMissing when there is none.
	Status(ctx context.Context) (machine.VM, error)
	// Start makes it, starts it or mends it, and is quick where it runs. note
	// receives the progress.
	Start(ctx context.Context, note func(string)) error
	Stop(ctx context.Context, note func(string)) error
	// Recreate makes it again: all that it holds is lost.
	Recreate(ctx context.Context, note func(string)) error
	// Logs are the files of its logs, the most telling first.
	Logs(ctx context.Context) ([]string, error)
	// Shell is a command that opens a shell in it, outside of every sandbox, or
	// runs argv there.
	Shell(ctx context.Context, argv []string) (command, env []string, err error)
}

// VM is the virtual machine with the sandboxes that are in it.
type VM struct {
	machine.VM
	Sandboxes []string `json:"sandboxes"`         // of every repository
	Deleted   []string `json:"deleted,omitempty"` // sandboxes whose files it keeps for the trash
	Running   []string `json:"running"`           // those of them that run
	// Singles are the virtual machines of single sandboxes, and what they are copies of.
	Singles []SingleVM `json:"singles"`
}

// SingleVM is the virtual machine of one sandbox, or what those are copies of.
type SingleVM = machine.VM

// VMRequest asks to stop the virtual machine or to make it again.
type VMRequest struct {
	Dir string
	// Confirm is asked before sandboxes end or lose files; nil asks no one.
	Confirm func(VM) (bool, error)
}

// VMStatus says what the virtual machine is. It starts nothing.
func (e *Engine) VMStatus(ctx context.Context) (VM, error) {
	if err := e.hasVM(); err != nil {
		return VM{}, err
	}
	if err := e.configureVM(ctx); err != nil {
		return VM{}, err
	}
	found, err := e.VM.Status(ctx)
	if err != nil {
		return VM{}, err
	}
	vm := VM{VM: found}
	if vm.Singles, err = e.SingleVMs(ctx); err != nil {
		return VM{}, err
	}
	records, _, err := e.Store.Sandboxes()
	if err != nil {
		return VM{}, err
	}
	trashed, err := e.trashedFar()
	if err != nil {
		return VM{}, err
	}
	vm.Deleted = namesOf(trashed[found.Driver])
	for _, record := range records {
		if record.Driver != found.Driver {
			continue
		}
		vm.Sandboxes = append(vm.Sandboxes, record.Name)
		if ran(record) {
			vm.Running = append(vm.Running, record.Name)
		}
	}
	return vm, nil
}

func ran(record *sandbox.Sandbox) bool {
	return record.State == sandbox.Running || record.State == sandbox.Paused || record.State == sandbox.Unreachable
}

// StartVM makes the virtual machine, or starts it.
func (e *Engine) StartVM(ctx context.Context, dir string) (vm VM, err error) {
	if err := e.hasVM(); err != nil {
		return vm, err
	}
	ctx, call, err := e.record(ctx, "machine start", dir, "", nil)
	if err != nil {
		return vm, err
	}
	defer func() { err = call.end("", nil, err) }()
	if err := e.bringVM(ctx, e.VM.Driver(), ""); err != nil {
		return vm, err
	}
	return e.VMStatus(ctx)
}

// StopVM stops the sandboxes in the virtual machine, and then it.
func (e *Engine) StopVM(ctx context.Context, request VMRequest) (vm VM, err error) {
	vm, err = e.VMStatus(ctx)
	if err != nil || vm.State == machine.VMMissing || vm.State == machine.VMStopped {
		return vm, err
	}
	if len(vm.Running) > 0 {
		if err := request.confirm("stop", vm); err != nil {
			return vm, err
		}
	}
	ctx, call, err := e.record(ctx, "machine stop", request.Dir, "", map[string]any{"sandboxes": vm.Running})
	if err != nil {
		return vm, err
	}
	defer func() { err = call.end("", nil, err) }()
	if err := e.stopInVM(ctx); err != nil {
		return vm, err
	}
	if err := e.underWay("stopping the virtual machine", func(note func(string)) error { return e.VM.Stop(ctx, note) }); err != nil {
		return vm, err
	}
	return e.VMStatus(ctx)
}

// RecreateVM makes the virtual machine again, from the configuration as it is now.
// Everything in its sandboxes besides their commits is lost.
func (e *Engine) RecreateVM(ctx context.Context, request VMRequest) (vm VM, err error) {
	vm, err = e.VMStatus(ctx)
	if err != nil {
		return vm, err
	}
	if vm.State != machine.VMMissing {
		if err := request.confirm("recreate", vm); err != nil {
			return vm, err
		}
	}
	ctx, call, err := e.record(ctx, "machine recreate", request.Dir, "", map[string]any{"sandboxes": vm.Sandboxes})
	if err != nil {
		return vm, err
	}
	defer func() { err = call.end("", nil, err) }()
	if vm.State == machine.VMRunning {
		if err := e.stopInVM(ctx); err != nil { // commits what they have
			return vm, err
		}
	}
	if err := e.underWay("making the virtual machine", func(note func(string)) error { return e.VM.Recreate(ctx, note) }); err != nil {
		return vm, err
	}
	return e.VMStatus(ctx)
}

func (r VMRequest) confirm(verb string, vm VM) error {
	if r.Confirm == nil {
		return nil
	}
	yes, err := r.Confirm(vm)
	if err == nil && !yes {
		err = fault.New(fault.Canceled, "cannot %s the virtual machine %q: it was not confirmed", verb, vm.Name)
	}
	return err
}

// stopInVM stops what runs in the virtual machine, with a commit of each.
func (e *Engine) stopInVM(ctx context.Context) error {
	records, _, err := e.Store.Sandboxes()
	if err != nil {
		return err
	}
	var failed []error
	for _, record := range records {
		if record.Driver == e.VM.Driver() && ran(record) {
			_, err := e.Stop(ctx, StopRequest{Dir: record.Repository, Name: record.Name})
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// VMLogs are the files of the logs of the virtual machine.
func (e *Engine) VMLogs(ctx context.Context) ([]string, error) {
	if err := e.hasVM(); err != nil {
		return nil, err
	}
	return e.VM.Logs(ctx)
}

// VMShell is the command that runs argv, or a shell, in the virtual machine,
// outside of every sandbox: the way in to mend it.
func (e *Engine) VMShell(ctx context.Context, dir string, argv []string) (command, env []string, err error) {
	if err := e.hasVM(); err != nil {
		return nil, nil, err
	}
	ctx, call, err := e.record(ctx, "machine shell", dir, "", map[string]any{"argv": argv})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = call.end("", nil, err) }()
	if err := e.bringVM(ctx, e.VM.Driver(), ""); err != nil {
		return nil, nil, err
	}
	return e.VM.Shell(ctx, argv)
}

func (e *Engine) hasVM() error {
	if e.VM == nil {
		return fault.New(fault.Unsupported, "this program has no virtual machine")
	}
	return nil
}

// configureVM passes on the human's configuration. Repositories have no say: the
// machine is for all of them.
func (e *Engine) configureVM(ctx context.Context) error {
	user, err := config.LoadUser(callerOf(ctx))
	if err != nil {
		return err
	}
	return e.VM.Configure(machine.VMSettings{
		CPUs: user.VM.CPUs, Memory: user.VM.Memory, Disk: user.VM.Disk, Type: user.VM.Type, Image: user.VM.Image, IdleStop: max(user.VM.IdleStop, 0),
	})
}

// vmOf is what a virtual machine that begins with a sandbox is given.
func vmOf(c config.VM) driver.VM {
	return driver.VM{CPUs: c.CPUs, Memory: c.Bytes, Idle: c.IdleStop, Image: c.Image}
}

// bringVM makes sure that the virtual machine runs where sandboxes of that driver
// are in one: the one they share, or the sandbox's own. It does so before a keeper
// begins, because the first time takes minutes and shows progress.
func (e *Engine) bringVM(ctx context.Context, driver, stateDir string) error {
	if e.VM != nil && e.Drivers.Live(e.VM.Driver()) == driver {
		return e.configureVM(ctx) // the keeper makes that of live environments
	}
	if e.VM == nil || e.VM.Driver() != driver && e.VM.Single() != driver {
		return nil
	}
	if err := e.configureVM(ctx); err != nil {
		return err
	}
	return e.underWay("starting the virtual machine", func(note func(string)) error {
		if e.VM.Single() == driver {
			return e.VM.StartSingle(ctx, stateDir, note)
		}
		return e.VM.Start(ctx, note)
	})
}

// ownVM is the driver to take where a human has chosen one, and wants virtual machines
// for single sandboxes.
func (e *Engine) ownVM(chosen string, c config.VM) string {
	if e.VM != nil && chosen == e.VM.Driver() && c.Isolation == config.IsolationVM {
		return e.VM.Single()
	}
	return chosen
}

// underWay shows activity while do runs. On a terminal a note replaces it.
func (e *Engine) underWay(what string, do func(note func(string)) error) error {
	if e.Progress == nil {
		return do(nil)
	}
	shown := what
	e.Progress(shown, 0, Uncounted)
	defer func() { e.Progress(shown, 1, Uncounted) }()
	return do(func(note string) {
		e.Progress(shown, 1, Uncounted)
		shown = what + ": " + note
		e.Progress(shown, 0, Uncounted)
	})
}

// machineryPatience bounds what a listing waits for a hypervisor.
const machineryPatience = 10 * time.Second

// machinery asks the hypervisor of a sandbox's machine about it; nil where there is
// none that answers.
func machinery(ctx context.Context, p *place, lease *sandbox.Lease) *Machinery {
	h, has := p.driver.(driver.Hypervised)
	if !has {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, machineryPatience)
	defer cancel()
	m, err := h.Machine(ctx, p.driverLease(lease), true)
	if err != nil {
		return nil
	}
	return &m
}

// because completes an event with what the hypervisor of the sandbox's machine says.
func because(ctx context.Context, p *place, lease *sandbox.Lease, event *sandbox.Event) *sandbox.Event {
	event.Data = driver.Because(ctx, p.driver, p.driverLease(lease), event.Data)
	return event
}
