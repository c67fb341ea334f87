//go:build linux

package remote_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/drivertest"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/outpost/station"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// beside is a machine that has a directory of this one, under another name.
type beside struct {
	station     *station.Station
	here, there string
}

func (beside) Name() string                 { return "beside" }
func (beside) Ensure(context.Context) error { return nil }
func (b beside) Meeting() (string, string)  { return b.here, b.there }
func (b beside) Dial(context.Context) (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	go func() { _ = b.station.Serve(there) }()
	return here, nil
}

// asked is placeless and remembers what it was asked for.
type asked struct {
	placeless
	spec *driver.Spec
}

func (a asked) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	*a.spec = spec
	return a.placeless.Acquire(ctx, spec)
}

// Whether descriptors are passed is a fact of each place: the machine has to be
// reached through a socket of this one, and to name the same boot.
func TestKernelIsAFactOfTheLease(t *testing.T) {
	self, err := process.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		boot          string
		none, missing bool // the machine has no directory; it lacks the one that it names
		streams       bool // asked for
		want          sandbox.Network
	}{
		{name: "this kernel", boot: self.Boot, want: sandbox.NetworkDescriptors},
		{name: "another kernel", boot: "another", want: sandbox.NetworkStreams},
		{name: "it does not say", want: sandbox.NetworkStreams},
		{name: "no directory", boot: self.Boot, none: true, want: sandbox.NetworkStreams},
		{name: "another disk", boot: self.Boot, missing: true, want: sandbox.NetworkStreams},
		{name: "turned off", boot: self.Boot, streams: true, want: sandbox.NetworkStreams},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			got := &driver.Spec{}
			m := beside{station: &station.Station{Root: filepath.Join(dir, "machine"), Driver: asked{spec: got}, Boot: c.boot}, here: filepath.Join(dir, "here"), there: filepath.Join(dir, "there")}
			for _, made := range []string{m.station.Root, m.here, filepath.Join(dir, "state/upper"), filepath.Join(dir, "state/home"), filepath.Join(dir, "layer")} {
				if err := os.MkdirAll(made, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if !c.missing {
				if err := os.Symlink(m.here, m.there); err != nil {
					t.Fatal(err)
				}
			}
			if c.none {
				m.here, m.there = "", ""
			}
			d := remote.New("beside", sandbox.Traits{Files: sandbox.FilesCarried, Network: sandbox.NetworkStreams}, func(string) remote.Machine { return m })
			lease, err := d.Acquire(t.Context(), driver.Spec{SandboxID: "box", StateDir: filepath.Join(dir, "state"), Streams: c.streams, Workspace: driver.Workspace{
				Path: "/work", Layers: []string{filepath.Join(dir, "layer")}, Upper: filepath.Join(dir, "state/upper"),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if lease.Traits.Network != c.want || got.Streams != (c.want == sandbox.NetworkStreams) {
				t.Errorf("the lease says %q, and the place has streams: %v; want %q", lease.Traits.Network, got.Streams, c.want)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "here", "*")); err != nil || len(left) > 0 {
				t.Errorf("sockets stay behind: %q, %v", left, err)
			}
		})
	}
}

// nextDoor is a child machine that has a directory of this one.
type nextDoor struct {
	remote.Child
	dir string
}

func (n nextDoor) Meeting() (here, there string) { return n.dir, n.dir }

// passing is a driver all of whose places pass descriptors.
type passing struct {
	*remote.Driver
	t testing.TB
}

func (p passing) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	lease, err := p.Driver.Acquire(ctx, spec)
	if err == nil && lease.Traits.Network != sandbox.NetworkDescriptors {
		p.t.Errorf("connections of the place are %q", lease.Traits.Network)
	}
	return lease, err
}

// What drivers promise about wires holds where a guest's come to this machine by
// themselves; TestContract has the other way.
func TestContractOnThisKernel(t *testing.T) {
	env := func(t testing.TB) drivertest.Env {
		env := newEnv(t)
		meeting := t.TempDir()
		env.Driver = func() driver.Driver {
			child := remote.NewChild()
			return passing{remote.New(remote.ChildName, child.Traits(), func(stateDir string) remote.Machine {
				if stateDir == "" {
					return remote.Child{}
				}
				return nextDoor{remote.Child{Root: filepath.Join(filepath.Dir(filepath.Dir(stateDir)), "machines", remote.ChildName)}, meeting}
			}), t}
		}
		return env
	}
	if probe := env(t); !probe.Driver().Capabilities().Full() {
		t.Skip("places cannot be isolated here; TestContract demands it where it has to be")
	}
	wanted := []string{
		"runs commands", "answers its own keeper only", "is found from its record", "is lost after destroy", "destroys after an orderly end",
		"carries many wires", "pauses and resumes", "ends while it is paused", "says what its places are", "hands connections over as it says", "lets nothing out",
	}
	for _, check := range drivertest.Checks() {
		at := slices.Index(wanted, check.Name)
		if at < 0 {
			continue
		}
		wanted = slices.Delete(wanted, at, at+1)
		t.Run(check.Name, func(t *testing.T) {
			e := env(t)
			if err := check.Perform(t.Context(), &e); err != nil {
				t.Errorf("%v\nwhy it matters: %s", err, check.Why)
			}
		})
	}
	if len(wanted) > 0 {
		t.Errorf("the contract has no checks %q", wanted)
	}
}
