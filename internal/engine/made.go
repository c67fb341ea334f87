package engine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// MachineUsage is a machine that a driver has made for sandboxes, and that stays
// when they are gone: a container with its volume, or a virtual machine.
type MachineUsage struct {
	Driver string `json:"driver"`
	driver.Made
}

// madeMachines lists them. A driver that has never made one asks no engine.
func (e *Engine) madeMachines(ctx context.Context) ([]MachineUsage, error) {
	all := []MachineUsage{}
	for _, name := range e.Drivers.Names() {
		maker, has := e.Drivers.Get(name).(driver.Maker)
		if !has {
			continue
		}
		made, err := maker.Made(ctx, e.Store.Root)
		if err != nil {
			return nil, err
		}
		for _, one := range made {
			if one.Sandboxes == nil {
				one.Sandboxes = []string{}
			}
			all = append(all, MachineUsage{Driver: name, Made: one})
		}
	}
	return all, nil
}

// planMachines lists those that no sandbox and no golden is in.
func (e *Engine) planMachines(ctx context.Context) ([]Pruned, error) {
	all, err := e.madeMachines(ctx)
	if err != nil {
		return nil, err
	}
	var plan []Pruned
	for _, one := range all {
		if len(one.Sandboxes)+len(one.Goldens) > 0 {
			continue
		}
		why := "no sandbox is in it"
		if one.Kind == driver.MadeDisk {
			why = "no sandbox uses this copy of " + one.Image + ", and new ones begin with another"
		}
		plan = append(plan, Pruned{Kind: cmp.Or(one.Kind, "container"), Name: one.Name, Bytes: max(one.Bytes, 0), Why: why, made: one, Kept: one.Trouble})
	}
	return plan, nil
}

// pruneMachine removes one that planMachines has listed.
func (e *Engine) pruneMachine(ctx context.Context, one *Pruned) error {
	maker, has := e.Drivers.Get(one.made.Driver).(driver.Maker)
	if !has {
		return fmt.Errorf("the driver %q makes no machines", one.made.Driver)
	}
	err := maker.Unmake(ctx, e.Store.Root, one.made.Name)
	if fault.KindOf(err) == fault.Conflict { // a sandbox has begun in it since
		one.Kept = err.Error()
		return nil
	}
	return err
}
