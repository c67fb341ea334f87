package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
)

// Machines are the machines that a human has added, and how they are reached.
type Machines interface {
	All() ([]machine.Machine, error)
	// Add reaches a machine, installs what it needs, and records it.
	Add(ctx context.Context, wanted machine.Machine) (machine.Machine, error)
	// Status asks it what it is.
	Status(ctx context.Context, name string) (machine.Status, error)
	// Remove clears the machine, unless it is only to be forgotten, and the record.
	Remove(ctx context.Context, name string, forget bool) error
}

// Machine is one of the human's, with the sandboxes that are there.
type Machine struct {
	machine.Machine
	Address   string   `json:"address"`
	Sandboxes []string `json:"sandboxes"` // of every repository
}

// MachineStatus is a machine's report about itself.
type MachineStatus = machine.Status

// MachineRequest asks to add a machine.
type MachineRequest struct {
	Dir, Name, Address string
	Identity           string // path of a private key; empty is ssh's own choice
}

// OnMachine is the driver of sandboxes on a machine.
func OnMachine(name string) string { return driver.OnMachine(name) }

// MachineOf is the machine of a driver; empty if there is none of the human's.
func MachineOf(name string) string { return driver.MachineOf(name) }

// driverOf is the driver that a configuration chooses; empty is the default one.
func driverOf(c config.Config) string {
	if c.Machine != "" {
		return driver.OnMachine(c.Machine)
	}
	return c.Driver
}

// SingleVMs are the virtual machines of single sandboxes, and what they are copies of.
// Lima is asked only where there are any.
func (e *Engine) SingleVMs(ctx context.Context) ([]SingleVM, error) {
	if e.VM == nil {
		return nil, nil
	}
	all, err := e.VM.Singles(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	records, _, err := e.Store.Sandboxes()
	for _, record := range records {
		for i := range all {
			if all[i].Sandbox == record.ID {
				all[i].Sandbox = record.Name
			}
		}
	}
	return all, err
}

// ListMachines lists the machines in the order of their names.
func (e *Engine) ListMachines(context.Context) ([]Machine, error) {
	if e.Machines == nil {
		return nil, nil
	}
	found, err := e.Machines.All()
	if err != nil {
		return nil, err
	}
	held, err := e.onMachines()
	if err != nil {
		return nil, err
	}
	var all []Machine
	for _, one := range found {
		all = append(all, Machine{Machine: one, Address: one.Address(), Sandboxes: held[one.Name]})
	}
	return all, nil
}

// onMachines are the names of sandboxes, by their machine.
func (e *Engine) onMachines() (map[string][]string, error) {
	records, _, err := e.Store.Sandboxes()
	if err != nil {
		return nil, err
	}
	held := map[string][]string{}
	for _, record := range records {
		if on := driver.MachineOf(record.Driver); on != "" {
			held[on] = append(held[on], record.Name)
		}
	}
	return held, nil
}

// AddMachine adds a machine once it answers.
func (e *Engine) AddMachine(ctx context.Context, request MachineRequest) (added Machine, status MachineStatus, err error) {
	wanted, err := machine.Parse(request.Name, request.Address, request.Identity)
	if err == nil && e.Machines == nil {
		err = fault.New(fault.Unsupported, "cannot add a machine: this program reaches none")
	}
	if err != nil {
		return added, status, err
	}
	ctx, call, err := e.record(ctx, "machine add", request.Dir, "", map[string]any{"machine": request.Name, "address": request.Address})
	if err != nil {
		return added, status, err
	}
	defer func() { err = call.end("", nil, err) }()
	made, err := e.Machines.Add(ctx, wanted)
	if err != nil {
		return added, status, err
	}
	added = Machine{Machine: made, Address: made.Address()}
	status, err = e.Machines.Status(ctx, made.Name)
	return added, status, err
}

// TestMachine asks a machine what it is.
func (e *Engine) TestMachine(ctx context.Context, name string) (MachineStatus, error) {
	if err := e.knownMachine(name); err != nil {
		return MachineStatus{}, err
	}
	return e.Machines.Status(ctx, name)
}

func (e *Engine) knownMachine(name string) error {
	if err := machine.CheckName(name); err != nil {
		return err
	}
	if e.Machines == nil {
		return fault.New(fault.NotFound, "there is no machine %q", name).WithHint("litterbox machine list")
	}
	return nil
}

// RemoveMachine removes litterbox's files from a machine, and forgets it. With
// forget nothing there is touched. A machine with sandboxes, or with files of deleted
// ones, is kept.
func (e *Engine) RemoveMachine(ctx context.Context, dir, name string, forget bool) (err error) {
	if err := e.knownMachine(name); err != nil {
		return err
	}
	ctx, call, err := e.record(ctx, "machine remove", dir, "", map[string]any{"machine": name, "forget": forget})
	if err != nil {
		return err
	}
	defer func() { err = call.end("", nil, err) }()
	held, err := e.onMachines()
	if err != nil {
		return err
	}
	if names := held[name]; len(names) > 0 {
		return fault.New(fault.Conflict, "cannot remove the machine %q: %d sandboxes are on it: %s", name, len(names), strings.Join(names, ", ")).
			WithHint("litterbox list --all --machine %s; litterbox delete NAME", name)
	}
	trashed, err := e.trashedFar()
	if err != nil {
		return err
	}
	if names := namesOf(trashed[driver.OnMachine(name)]); len(names) > 0 {
		return fault.New(fault.Conflict, "cannot remove the machine %q: it keeps the files of %s: %s", name, counted(len(names), "deleted sandbox"), strings.Join(names, ", ")).
			WithHint("litterbox trash empty --all %s", strings.Join(names, " "))
	}
	if !forget {
		if err := e.sayGone(ctx); err != nil {
			return err
		}
	}
	err = e.Machines.Remove(ctx, name, forget)
	if err == nil {
		err = e.forgetGoldens(driver.OnMachine(name))
	}
	if err != nil && errors.Is(err, driver.ErrUnreachable) {
		return fault.Wrap("", err, "cannot clear the machine %q (litterbox machine remove %s --forget leaves its files there)", name, name)
	}
	return err
}
