package engine

import (
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// chooseDriver gives the driver of a new sandbox: the one that was chosen, or the
// program's default. The degraded one is taken automatically only where none was
// chosen, a lower tier was allowed and the full tier was tried in vain; the notes
// then say, once, why and what it does not isolate.
func (e *Engine) chooseDriver(chosen string, allowDegraded bool) (d driver.Driver, isolation sandbox.Isolation, notes []string, err error) {
	if chosen != "" {
		return e.chosenDriver(chosen, allowDegraded)
	}
	if d, err = e.Drivers.Find(e.Drivers.Default()); err != nil {
		return nil, "", nil, err
	}
	if !allowDegraded || e.Full == nil || e.Drivers.Get(e.Degraded) == nil {
		return d, sandbox.IsolationFull, nil, nil
	}
	why := e.Full()
	if why == nil {
		return d, sandbox.IsolationFull, nil, nil
	}
	d = e.Drivers.Get(e.Degraded)
	can := d.Capabilities()
	if !degradedTier(can).Available {
		// Its own refusal says what is missing for either.
		return d, sandbox.IsolationDegraded, nil, nil
	}
	notes = []string{"isolation is degraded: " + strings.TrimSuffix(why.Error(), ": "+driver.ErrLeaseUnavailable.Error())}
	if hint := fault.HintOf(why); hint != "" {
		notes = append(notes, "to fix it: "+hint)
	}
	return d, sandbox.IsolationDegraded, append(notes, notIsolated(can)...), nil
}

// chosenDriver is the driver that a human has named. A driver that never isolates
// fully says what it lacks, and needs that to be accepted.
func (e *Engine) chosenDriver(name string, allowDegraded bool) (driver.Driver, sandbox.Isolation, []string, error) {
	d, err := e.Drivers.Find(name)
	if err != nil {
		return nil, "", nil, err
	}
	can := d.Capabilities()
	if slices.ContainsFunc(can.Isolation, func(t driver.Tier) bool { return t.Isolation == sandbox.IsolationFull }) {
		return d, sandbox.IsolationFull, nil, nil // its own refusal says what is missing for it
	}
	if !allowDegraded {
		return nil, "", nil, fault.Wrap("", driver.ErrUnsupported, "cannot create a sandbox: the %s driver does not isolate fully (--allow-degraded accepts that)", name).
			WithHint("litterbox doctor --driver %s", name)
	}
	return d, sandbox.IsolationDegraded, notIsolated(can), nil
}

// notIsolated are the notes on what a degraded tier lacks.
func notIsolated(can driver.Capabilities) []string {
	var notes []string
	for _, one := range degradedTier(can).Lacks {
		notes = append(notes, "not isolated: "+one)
	}
	return notes
}

func degradedTier(can driver.Capabilities) driver.Tier {
	at := slices.IndexFunc(can.Isolation, func(tier driver.Tier) bool { return tier.Isolation == sandbox.IsolationDegraded })
	if at < 0 {
		return driver.Tier{Isolation: sandbox.IsolationDegraded}
	}
	return can.Isolation[at]
}

// mountable takes out of spec what the driver cannot mount; the driver refuses when
// a mount that a sandbox requires is among them.
func (p *place) mountable(spec *driver.Spec) {
	can := p.driver.Traits().Mounts
	if can == sandbox.MountsAny {
		return
	}
	spec.Caches = nil
	spec.Mounts = slices.DeleteFunc(spec.Mounts, func(m driver.Mount) bool {
		return can != sandbox.MountsSamePath || m.Source != m.Target || m.Writable
	})
}
