package container

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Kind is an engine; also the name of the driver.
type Kind string

// The engines.
const (
	Docker Kind = "docker"
	Podman Kind = "podman"
)

// Title is the engine's name in a sentence.
func (k Kind) Title() string {
	if k == Podman {
		return "Podman"
	}
	return "Docker"
}

// Driver implements driver.Driver, driver.Carrier, driver.Imager and driver.Maker.
type Driver struct {
	*remote.Driver
	kind   Kind
	engine Engine
	env    Environment

	asked sync.Once
	can   driver.Capabilities
}

// New makes the driver of an engine. env says whose engine to look for; sandboxes
// remember theirs.
func New(kind Kind, engine Engine, env Environment) *Driver {
	traits := sandbox.Traits{
		System: "linux", Architecture: runtime.GOARCH,
		Files: sandbox.FilesCarried, Mounts: sandbox.MountsNone,
		Network: sandbox.NetworkStreams, Enforcer: "network namespace",
		Metrics:   []string{sandbox.MetricCPU, sandbox.MetricMemory, sandbox.MetricProcesses, sandbox.MetricThreads, sandbox.MetricUptime},
		KeepsHome: true,
	}
	d := &Driver{kind: kind, engine: engine, env: env}
	d.Driver = remote.New(string(kind), traits, d.machineOf)
	return d
}

// Capabilities implements driver.Driver. A container that does not exist yet cannot
// be asked: obstacles to isolation there are reported when a place is made.
func (d *Driver) Capabilities() driver.Capabilities {
	d.asked.Do(func() {
		// What the namespace driver can do in a container, which has no control groups.
		// A keeper asks, too, and knows only the sandbox's engine.
		d.can = driver.Capabilities{
			Traits: d.Traits(), Pause: true, Fork: true, Goldens: true, FSMonitor: fsmonitor.Program,
			Snapshots: driver.Snapshots{Freeze: true, Live: true}, Limits: []string{sandbox.LimitOpenFiles},
		}
		full := driver.Tier{Isolation: sandbox.IsolationFull}
		_, err := d.connect(context.Background())
		if err != nil {
			full.Missing = []string{err.Error()}
			if hint := fault.HintOf(err); hint != "" {
				full.Mend = []string{hint}
			}
		} else {
			full.Available = true
		}
		d.can.Isolation = []driver.Tier{full}
	})
	return d.can
}

// connect finds an engine that answers.
func (d *Driver) connect(ctx context.Context) (address string, err error) {
	address, err = d.env.Find(d.kind)
	if err != nil {
		return "", err
	}
	_, err = d.engine.Do(ctx, Order{Op: OpConnect, Kind: d.kind, Address: address}, nil)
	return address, err
}

// Image implements driver.Imager.
func (d *Driver) Image(ctx context.Context, wanted driver.Wanted, progress func(what string, done, total int)) (sandbox.Image, error) {
	reference := wanted.Reference
	if d.kind == Podman && wanted.Runtime != "" {
		return sandbox.Image{}, fault.Wrap("", driver.ErrUnsupported, "cannot use the runtime %q: Podman's API takes none for a container", wanted.Runtime).
			WithHint("runtime = %q below [engine] of containers.conf, without container.runtime", wanted.Runtime)
	}
	address, err := d.env.Find(d.kind)
	if err != nil {
		return sandbox.Image{}, err
	}
	if reference == "" {
		reference = DefaultImage
	}
	reply, err := d.engine.Do(ctx, Order{Op: OpImage, Kind: d.kind, Address: address, Image: reference, Pull: wanted.Pull, Runtime: wanted.Runtime}, func(p Progress) {
		if progress != nil {
			progress(p.What, p.Done, p.Total)
		}
	})
	if err != nil {
		return sandbox.Image{}, err
	}
	if reply.Image == nil || reply.Image.Digest == "" {
		return sandbox.Image{}, fault.New(fault.Unavailable, "%s does not say what the image %q is", d.kind.Title(), reference)
	}
	reply.Image.Reference, reply.Image.Engine, reply.Image.Runtime = reference, address, wanted.Runtime
	return *reply.Image, nil
}

// DefaultImage is the image of a container when container.base-image is not
// set: Debian with git and tools that download sources.
const DefaultImage = "docker.io/library/buildpack-deps:bookworm-scm"

// Acquire implements driver.Driver.
func (d *Driver) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	base := spec.Base
	switch _, err := readRecord(spec.StateDir); {
	case errors.Is(err, fs.ErrNotExist) && (base == nil || base.Image == ""):
		return driver.Lease{}, fault.Wrap("", driver.ErrUnsupported, "cannot start sandbox %q: it has no image of %s", spec.Name, d.kind.Title())
	case errors.Is(err, fs.ErrNotExist):
		if err := d.begin(ctx, spec); err != nil {
			return driver.Lease{}, err
		}
	case err != nil:
		return driver.Lease{}, err
	}
	spec.Base = nil // the machine's own userland
	return d.Driver.Acquire(ctx, spec)
}

// begin chooses the container of a sandbox that has none, and checks whether a
// place can be isolated there: what a runtime or an engine lacks is only known
// inside.
func (d *Driver) begin(ctx context.Context, spec driver.Spec) error {
	record := recordOf(d.kind, stateOf(spec.StateDir), *spec.Base)
	if err := record.write(spec.StateDir); err != nil {
		return err
	}
	if err := record.remember(); err != nil {
		return err
	}
	tiers, err := d.Tiers(ctx, spec.StateDir)
	if err == nil && !(driver.Capabilities{Isolation: tiers}).Full() {
		err = d.walls(spec.Name, record, tiers)
	} else if err != nil && record.Runtime != "" {
		err = fault.Wrap("", err, "cannot use the runtime %q", record.Runtime).WithHint("set container.runtime = \"runc\", or remove it")
	}
	if err == nil {
		return nil
	}
	// The sandbox has nothing there yet. Others may.
	err = errors.Join(err, os.Remove(filepath.Join(spec.StateDir, File)))
	if gone := d.Unmake(context.WithoutCancel(ctx), record.State, record.Name); gone != nil && fault.KindOf(gone) != fault.Conflict {
		err = errors.Join(err, gone)
	}
	return err
}

// walls reports what a place in a container would lack.
func (d *Driver) walls(name string, record Record, tiers []driver.Tier) error {
	var missing, mend []string
	for _, tier := range tiers {
		if tier.Isolation == sandbox.IsolationFull {
			missing, mend = append(missing, tier.Missing...), append(mend, tier.Mend...)
		}
	}
	in, hint := d.kind.Title(), "litterbox create "+name+" --driver namespace"
	if len(mend) > 0 { // the kernel is the engine's
		hint = mend[0] + "  # where " + in + " runs"
	}
	if record.Runtime != "" {
		in, hint = in+" with the runtime "+strconv.Quote(record.Runtime), "set container.runtime = \"runc\", or remove it"
	}
	return fault.Wrap("", driver.ErrUnsupported, "cannot isolate sandbox %q in a container of %s: %s", name, in, cmp.Or(strings.Join(missing, "; "), "its kernel does not say what is missing")).
		WithHint("%s", hint)
}

// Fork implements driver.Snapshotter: the second sandbox is in the container of the
// first.
func (d *Driver) Fork(ctx context.Context, from driver.Lease, id string, to driver.Lease) ([]string, error) {
	if err := stays(from, to); err != nil {
		return nil, err
	}
	return d.Driver.Fork(ctx, from, id, to)
}
