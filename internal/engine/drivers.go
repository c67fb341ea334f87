package engine

import (
	"cmp"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Capabilities are what a driver can do.
type Capabilities = driver.Capabilities

// DriverReport is one driver, as doctor shows it.
type DriverReport struct {
	Name         string            `json:"name"`
	Default      bool              `json:"default"`
	Isolation    sandbox.Isolation `json:"isolation"` // the strongest that can be had; empty if there is none
	Capabilities Capabilities      `json:"capabilities"`
}

// DriverNames lists the drivers of this program.
func (e *Engine) DriverNames() []string { return e.Drivers.Names() }

// DriverReport says what one driver can do on this machine.
func (e *Engine) DriverReport(name string) (DriverReport, error) {
	d, err := e.Drivers.Find(name)
	if err != nil {
		return DriverReport{}, err
	}
	report := DriverReport{Name: name, Default: name == e.Drivers.Default(), Capabilities: d.Capabilities()}
	for _, tier := range report.Capabilities.Isolation {
		if tier.Available && report.Isolation == "" {
			report.Isolation = tier.Isolation
		}
	}
	return report, nil
}

// driverReports are those of all drivers.
func (e *Engine) driverReports() []DriverReport {
	var all []DriverReport
	for _, name := range e.Drivers.Names() {
		if report, err := e.DriverReport(name); err == nil { // it is in the list
			all = append(all, report)
		}
	}
	return all
}

// sharing is the driver of new sandboxes when name was chosen: another one where the
// human wants them to share a machine.
func (e *Engine) sharing(name string, c config.Config) string {
	if c.VM.Share {
		return cmp.Or(e.Drivers.Shared(name), name)
	}
	return name
}

// ofDriver refuses a sandbox of another driver than the one that was asked for.
func (e *Engine) ofDriver(p *place, wanted string) error {
	if wanted == "" || wanted == p.record.Driver || e.Drivers.Shared(wanted) == p.record.Driver {
		return nil
	}
	return fault.New(fault.Conflict, "sandbox %q has the driver %s, not %s, and keeps it", p.record.Name, p.record.Driver, wanted).
		WithHint("litterbox create %s-%s --driver %s", p.record.Name, wanted, wanted)
}
