package engine

import (
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// chooseDriver gives the driver of a new sandbox. The degraded one is taken
// only where it was allowed and the full tier was tried in vain; the notes say
// then, once, why that is and what it does not isolate.
func (e *Engine) chooseDriver(allowDegraded bool) (d driver.Driver, isolation sandbox.Isolation, notes []string, err error) {
	d, ok := e.Drivers[e.Default]
	if !ok {
		return nil, "", nil, fault.New(fault.Unsupported, "cannot create a sandbox: this program has no driver %q", e.Default)
	}
	if !allowDegraded || e.Full == nil || e.Drivers[e.Degraded] == nil {
		return d, sandbox.IsolationFull, nil, nil
	}
	why := e.Full()
	if why == nil {
		return d, sandbox.IsolationFull, nil, nil
	}
	d = e.Drivers[e.Degraded]
	can := d.Capabilities()
	if !degradedTier(can).Available {
		// Its own refusal says what is missing for either.
		return d, sandbox.IsolationDegraded, nil, nil
	}
	notes = []string{"isolation is degraded: " + strings.TrimSuffix(why.Error(), ": "+driver.ErrLeaseUnavailable.Error())}
	if hint := fault.HintOf(why); hint != "" {
		notes = append(notes, "what mends it: "+hint)
	}
	for _, one := range degradedTier(can).Lacks {
		notes = append(notes, "not isolated: "+one)
	}
	return d, sandbox.IsolationDegraded, notes, nil
}

func degradedTier(can driver.Capabilities) driver.Tier {
	at := slices.IndexFunc(can.Isolation, func(tier driver.Tier) bool { return tier.Isolation == sandbox.IsolationDegraded })
	if at < 0 {
		return driver.Tier{Isolation: sandbox.IsolationDegraded}
	}
	return can.Isolation[at]
}

// mountable takes out of spec what the driver cannot mount; the driver refuses
// what a sandbox cannot do without.
func (p *place) mountable(spec *driver.Spec) {
	can := p.driver.Traits().Mounts
	if can == sandbox.MountsAny {
		return
	}
	spec.Caches = nil
	spec.Mounts = slices.DeleteFunc(spec.Mounts, func(m driver.Mount) bool {
		return can != sandbox.MountsSamePath || m.Source != m.Target
	})
}
