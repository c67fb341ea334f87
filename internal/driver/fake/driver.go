package fake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Name implements driver.Driver.
func (Driver) Name() string { return "fake" }

// Capabilities implements driver.Driver.
func (d Driver) Capabilities() driver.Capabilities {
	all := !d.options.Minimal
	tier := driver.Tier{Isolation: sandbox.IsolationFull, Available: true}
	if d.degraded() {
		tier.Isolation, tier.Lacks = sandbox.IsolationDegraded, []string{"it pretends to isolate"}
	}
	return driver.Capabilities{
		Traits:    d.Traits(),
		Pause:     all && !d.has(PretendsToPause) && !d.has(PretendsToResume),
		Limits:    d.limits(),
		Snapshots: d.snapshots(),
		Fork:      d.snapshots().Freeze && !d.has(PretendsToFork),
		Goldens:   d.goldens(),
		Isolation: []driver.Tier{tier},
	}
}

func (d Driver) degraded() bool { return d.options.Minimal || d.has(PretendsToIsolate) }

// Traits implements driver.Driver. Its wire is memory, which carries no
// descriptors.
func (d Driver) Traits() sandbox.Traits {
	t := sandbox.Traits{
		System: runtime.GOOS, Architecture: runtime.GOARCH,
		Files: sandbox.FilesShared, Mounts: sandbox.MountsAny,
		Network: sandbox.NetworkStreams, Enforcer: "nothing runs inside",
		Metrics: []string{sandbox.MetricProcesses, sandbox.MetricThreads, sandbox.MetricUptime}, KeepsHome: true, Live: true, Lends: true,
	}
	if d.options.Minimal {
		t.Files, t.Mounts, t.Network, t.Metrics, t.KeepsHome, t.Live, t.Lends = sandbox.FilesCarried, sandbox.MountsNone, sandbox.NetworkNone, nil, false, false, false
	}
	switch d.options.Defect {
	case PretendsToMeasure:
		t.Metrics = nil
	case PretendsToCarry:
		t.Files = sandbox.FilesCarried
	case PretendsToForget:
		t.KeepsHome = false
	case ClaimsAnotherSystem:
		t.System = "plan9"
	case ClaimsDescriptors:
		t.Network = sandbox.NetworkDescriptors
	case PretendsToBeLive:
		t.Live = false
	case PretendsToLend:
		t.Lends = false
	case PretendsToMount:
		t.Mounts = sandbox.MountsNone
	}
	return t
}

// Ownership implements driver.Driver: files belong to the user who runs this.
func (d Driver) Ownership(string) driver.Ownership {
	own := driver.Ownership{UID: 1000, GID: 1000, UpperUID: -1, UpperGID: -1}
	if d.has(ChangesOwnership) {
		d.machine.mu.Lock()
		defer d.machine.mu.Unlock()
		d.machine.asked++
		own.GID += d.machine.asked
	}
	return own
}

// Carriage implements driver.Driver: layers are searched by name.
func (Driver) Carriage(context.Context, string) (sandbox.Carriage, string) {
	return sandbox.CarriageOverlay, ""
}

// handle is what a lease keeps of a place.
type handle struct {
	Serial int `json:"serial"`
}

// Acquire implements driver.Driver.
func (d Driver) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	lease := driver.Lease{ID: spec.SandboxID, SandboxID: spec.SandboxID, StateDir: spec.StateDir, Traits: d.Traits()}
	if d.has(ForgetsTraits) {
		lease.Traits = sandbox.Traits{}
	}
	if err := d.accepts(spec); err != nil {
		return lease, err
	}
	m := d.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.places[spec.SandboxID]; old != nil && old.running() && !d.has(AcquiresTwice) {
		return lease, fault.Wrap("", driver.ErrLeaseUnavailable, "cannot acquire a place for %q: one runs", spec.Name)
	}
	if err := errors.Join(d.forget(spec), d.prepare(spec)); err != nil {
		return lease, err
	}
	m.serial++
	p := d.newPlace(spec, m.serial)
	if d.has(LosesFilesInCrash) && m.places[spec.SandboxID] != nil && m.places[spec.SandboxID].crashed {
		if err := os.RemoveAll(spec.Workspace.Upper); err != nil {
			return lease, mountFailed(err)
		}
	}
	m.places[spec.SandboxID], m.known[spec.SandboxID] = p, spec
	// A canceled start undoes what it has made.
	if ctx.Err() != nil {
		if !d.has(LeavesCanceledPlaces) {
			p.end()
			delete(m.places, spec.SandboxID)
		}
		return lease, fault.Wrap(fault.Canceled, ctx.Err(), "cannot acquire a place for %q", spec.Name)
	}
	d.mine.Store(spec.SandboxID, true)
	words, err := json.Marshal(handle{m.serial})
	lease.Handle, lease.InForce = words, d.kept(spec.Limits)
	return lease, err
}

// accepts refuses what the driver does not declare.
func (d Driver) accepts(spec driver.Spec) error {
	switch {
	case d.degraded() && !spec.Degraded && !d.has(PretendsToIsolate):
		return fault.Wrap("", driver.ErrUnsupported, "cannot isolate %q fully", spec.Name)
	case len(spec.Mounts) > 0 && d.options.Minimal:
		return fault.Wrap("", driver.ErrUnsupported, "cannot mount anything for %q", spec.Name)
	case spec.Workspace.Live != nil && d.options.Minimal:
		return fault.Wrap("", driver.ErrUnsupported, "cannot show a directory of the host to %q", spec.Name)
	}
	return nil
}

// forget loses some of what a sandbox without snapshots had in its last run, if
// that is the defect.
func (d Driver) forget(spec driver.Spec) error {
	_, again := d.machine.known[spec.SandboxID]
	_, crashed := d.machine.places[spec.SandboxID]
	if !again || crashed || len(d.machine.saved[spec.SandboxID]) > 0 {
		return nil
	}
	if d.has(ForgetsDeletions) {
		delete(d.machine.deleted, spec.Workspace.Upper)
	}
	if d.has(ForgetsHome) || d.options.Minimal {
		if err := os.RemoveAll(filepath.Join(spec.StateDir, "home")); err != nil {
			return mountFailed(err)
		}
	}
	return nil
}

// prepare checks everything that a mount would check.
func (d Driver) prepare(spec driver.Spec) error {
	for _, layer := range spec.Workspace.Layers {
		if _, err := os.Stat(layer); err != nil {
			if d.has(LeavesFailedPlaces) {
				d.machine.leaked = append(d.machine.leaked, spec.SandboxID)
			}
			if d.has(LeaksErrno) {
				return fault.Wrap(fault.Unavailable, err, "cannot mount a layer")
			}
			return mountFailed(err)
		}
	}
	for _, dir := range []string{spec.StateDir, d.upperOf(spec), filepath.Join(spec.StateDir, "home")} {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return mountFailed(err)
		}
	}
	return nil
}

func mountFailed(err error) error {
	return fault.Wrap("", driver.ErrMountFailed, "cannot prepare the place: %v", err)
}

// find is the running place of a lease.
func (d Driver) find(lease driver.Lease) (*place, error) {
	lost := fault.Wrap("", driver.ErrMachineLost, "cannot reach the place of %q", lease.SandboxID)
	var words handle
	if err := json.Unmarshal(lease.Handle, &words); err != nil {
		return nil, fault.New(fault.Internal, "cannot read the lease's handle: %v", err)
	}
	if _, ok := d.mine.Load(lease.SandboxID); !ok && d.has(RemembersInMemory) {
		return nil, lost
	}
	p := d.machine.places[lease.SandboxID]
	if p == nil || p.serial != words.Serial || !p.running() {
		return p, lost
	}
	return p, nil
}

// reach is find for operations that need an answer from the place.
func (d Driver) reach(lease driver.Lease) (*place, error) {
	p, err := d.find(lease)
	if err == nil && p.deaf && !d.has(AnswersForTheDeaf) {
		sentinel := driver.ErrUnreachable
		if d.has(TakesSilenceForDeath) {
			sentinel = driver.ErrMachineLost
		}
		return nil, fault.Wrap("", sentinel, "cannot reach the place of %q", lease.SandboxID)
	}
	return p, err
}

// Attach implements driver.Driver.
func (d Driver) Attach(_ context.Context, lease driver.Lease) error {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	p, err := d.reach(lease)
	if err != nil && p == nil && d.has(AttachesToNothing) && errors.Is(err, driver.ErrMachineLost) {
		return nil
	}
	if err != nil && p != nil && p.crashed && d.has(MissesKilledGuest) {
		return nil
	}
	return err
}

// Dial implements driver.Driver.
func (d Driver) Dial(_ context.Context, lease driver.Lease) (net.Conn, error) {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	p, err := d.reach(lease)
	if err != nil {
		return nil, err
	}
	if d.has(MixesPlaces) && len(d.machine.places) > 2 {
		for _, other := range d.machine.places {
			if other.running() && other.serial > p.serial {
				p = other.dressedAs(p)
			}
		}
	}
	if d.has(CarriesOneWire) && p.wires() > 0 {
		return nil, fault.Wrap("", driver.ErrUnreachable, "cannot open a second wire")
	}
	return p.dial(), nil
}

// Recover implements driver.Driver. Nothing here can be half gone.
func (d Driver) Recover(_ context.Context, lease driver.Lease) ([]string, error) {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	p, err := d.find(lease)
	if err == nil && (d.has(RecoverEndsPlaces) && !p.deaf || d.has(RecoverEndsTheDeaf) && p.deaf) {
		p.end()
		return []string{"ended a place"}, nil
	}
	if len(lease.Handle) > 0 && err == nil && p.deaf {
		_, err = d.reach(lease)
		return nil, err
	}
	return nil, nil
}

// Destroy implements driver.Driver.
func (d Driver) Destroy(_ context.Context, lease driver.Lease, force bool) error {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	p := d.machine.places[lease.SandboxID]
	if p == nil {
		if d.has(FailsSecondDestroy) {
			return fault.Wrap("", driver.ErrMachineLost, "cannot destroy the place of %q", lease.SandboxID)
		}
		return nil
	}
	if p.paused() && d.has(OutlivesInPause) {
		return fault.New(fault.Timeout, "cannot end a place that stands still")
	}
	if !p.running() && !force && d.has(FailsOrderlyDestroy) {
		return fault.Wrap("", driver.ErrMachineLost, "cannot destroy the place of %q", lease.SandboxID)
	}
	if d.has(LeavesProcesses) {
		d.machine.leaked = append(d.machine.leaked, fmt.Sprintf("a process of %s", lease.SandboxID))
	}
	p.end()
	delete(d.machine.places, lease.SandboxID)
	return nil
}
