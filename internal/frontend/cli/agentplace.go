package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// chooseMachines asks the machines of --machines what they have free.
func (o *agentRunOptions) chooseMachines(ctx context.Context) (err error) {
	if len(o.machines) == 0 {
		return nil
	}
	if o.placing, err = o.e.Placing(ctx, o.machines); err == nil && o.placing != nil {
		o.console.notes(o.placing.Notes)
	}
	return err
}

// check validates the request before a sandbox is made. Resuming a conversation
// needs an existing one.
func (o *agentRunOptions) check(ctx context.Context) (err error) {
	if o.task.Resume {
		return nil
	}
	o.task.Secrets, err = o.e.CheckAgent(ctx, engine.AgentTask{Dir: o.dir, Client: o.client, Budget: o.task.Budget})
	return err
}

// place gives the name of the sandbox to work in, and makes it when needed.
func (o *agentRunOptions) place(ctx context.Context) (string, error) {
	if o.in != "" {
		exists, err := o.e.Exists(ctx, o.dir, o.in)
		if err == nil && !exists {
			_, err = o.e.Status(ctx, o.dir, o.in) // says why
		}
		return o.in, err
	}
	name := o.name
	if name == "" {
		name = engine.NameOf(o.client, o.prompt)
	}
	for number := 2; ; number++ {
		exists, err := o.e.Exists(ctx, o.dir, name)
		if err != nil {
			return "", err
		}
		if exists && !o.fresh {
			if o.name == "" {
				o.console.note("sandbox %q exists already, and the agent works in it; --new makes another", name)
			}
			return name, o.stays(ctx, name)
		}
		if !exists {
			err := o.make(ctx, name)
			if fault.KindOf(err) != fault.AlreadyExists || !o.fresh {
				return name, err
			}
		}
		if o.name != "" {
			return "", fault.New(fault.AlreadyExists, "sandbox %q exists already", name).WithHint("litterbox agent run %s PROMPT --in %s", o.client, name)
		}
		name = numbered(engine.NameOf(o.client, o.prompt), number)
	}
}

// stays refuses to work in an existing sandbox that is elsewhere than was asked
// for.
func (o *agentRunOptions) stays(ctx context.Context, name string) error {
	if o.driver == "" && o.placing == nil {
		return nil
	}
	status, err := o.e.Status(ctx, o.dir, name)
	if err != nil || status.Driver == o.driver || slices.Contains(o.machines, engine.MachineOf(status.Driver)) {
		return err
	}
	return fault.New(fault.AlreadyExists, "sandbox %q exists already, of the driver %q", name, status.Driver).
		WithHint("litterbox agent run %s PROMPT --in %s, or --new for another sandbox", o.client, name)
}

func numbered(name string, number int) string {
	suffix := fmt.Sprintf("-%d", number)
	return name[:min(len(name), sandbox.MaxNameLength-len(suffix))] + suffix
}

func (o *agentRunOptions) make(ctx context.Context, name string) error {
	output := &lines{console: o.console}
	on := o.driver
	if o.placing != nil {
		on = o.placing.Take()
	}
	made, err := o.e.Create(ctx, engine.CreateRequest{Dir: o.dir, Name: name, Driver: on, AllowDegraded: o.task.AllowDegraded, Review: o.console.review, Output: output})
	if flushErr := output.flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		o.placing.Give(on)
		return err
	}
	o.taken = on
	o.console.notes(made.Notes)
	return o.askPackages(ctx)
}

// askPackages asks once, for a new sandbox, whether installs may go through.
func (o *agentRunOptions) askPackages(ctx context.Context) error {
	if o.locked || o.task.Packages || o.json || !o.console.canAsk() {
		return nil
	}
	presets, err := o.e.PackagePresets(ctx, o.dir)
	if err != nil || len(presets) == 0 {
		return err
	}
	o.task.Packages, err = o.console.ask(ctx, "The repository installs packages. Allow "+strings.Join(presets, ", ")+" inside?")
	return err
}
