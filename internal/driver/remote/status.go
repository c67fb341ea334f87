package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/machine"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Status asks a machine for its present state.
func (d *Driver) Status(ctx context.Context) (machine.Status, error) {
	c := d.at("")
	if err := c.machine.Ensure(ctx); err != nil {
		return machine.Status{}, err
	}
	defer c.end()
	if _, err := c.dial(ctx); err != nil { // so that the answer's time leaves out connecting
		return machine.Status{}, err
	}
	asked := time.Now()
	answer, err := c.ask(ctx, outpost.Request{Op: outpost.OpStatus})
	if err == nil && answer.Status == nil {
		err = driver.Joined(driver.ErrUnreachable, errors.New("it does not say what it is"))
	}
	if err != nil {
		return machine.Status{}, err
	}
	took := time.Since(asked)
	s := machine.Status{
		RoundTrip: took, Clock: answer.Status.Now.Sub(asked.Add(took / 2)), Boot: answer.Status.Boot, Free: answer.Status.Free,
		Memory: answer.Status.Memory, Processors: answer.Status.Processors, Load: answer.Status.Load, Tiers: answer.Status.Capabilities.Isolation,
	}
	for _, tier := range s.Tiers {
		if tier.Available && s.Isolation == "" && tier.Isolation == sandbox.IsolationFull {
			s.Isolation = tier.Isolation
		}
	}
	return s, nil
}

// Tiers returns what the machine of a sandbox can isolate, and makes it if it does
// not exist.
func (d *Driver) Tiers(ctx context.Context, stateDir string) ([]driver.Tier, error) {
	if err := d.machine(stateDir).Ensure(ctx); err != nil {
		return nil, err
	}
	answer, err := d.at(stateDir).ask(ctx, outpost.Request{Op: outpost.OpStatus})
	if err == nil && answer.Status == nil {
		err = driver.Joined(driver.ErrUnreachable, errors.New("it does not say what it is"))
	}
	if err != nil {
		return nil, err
	}
	return answer.Status.Capabilities.Isolation, nil
}

// Ping asks the outpost in the machine of a sandbox whether it answers.
func (d *Driver) Ping(ctx context.Context, stateDir string) error {
	_, err := d.at(stateDir).ask(ctx, outpost.Request{Op: outpost.OpPlaces})
	return err
}

// Places returns the ids of the sandboxes that a machine has files of.
func (d *Driver) Places(ctx context.Context) ([]string, error) {
	c := d.at("")
	defer c.end()
	answer, err := c.ask(ctx, outpost.Request{Op: outpost.OpPlaces})
	var ids []string
	for _, one := range answer.Places {
		ids = append(ids, one.Sandbox)
	}
	return ids, err
}

// Hangup closes the link to the machine of a sandbox, which is about to be another
// one: the next request dials it again.
func (d *Driver) Hangup(stateDir string) { d.at(stateDir).end() }

// end closes the links: there are no more requests.
func (c *client) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range []*atomic.Pointer[outpost.Link]{&c.own, &c.lent} {
		if link := one.Swap(nil); link != nil {
			_ = link.Close() // nothing is under way on it
		}
	}
}
