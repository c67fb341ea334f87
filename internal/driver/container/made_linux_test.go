package container_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/outpost/station"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// engine is an engine without containers: it remembers its orders, and an
// outpost in this process answers for each container.
type engine struct {
	root string // of the outposts
	can  driver.Capabilities

	mu   sync.Mutex
	did  []container.Order
	kept []container.Kept
	away error
}

func (e *engine) Do(_ context.Context, order container.Order, _ func(container.Progress)) (container.Reply, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.did = append(e.did, order)
	return container.Reply{Machines: e.kept}, e.away
}

func (e *engine) Dial(context.Context, container.Order) (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	s := &station.Station{Root: e.root, Driver: able{can: e.can}}
	go func() { _ = s.Serve(there) }()
	return here, nil
}

// ops returns the operations of its orders.
func (e *engine) ops() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ops []string
	for _, order := range e.did {
		ops = append(ops, string(order.Op))
	}
	return strings.Join(ops, " ")
}

// able is a driver that only declares capabilities.
type able struct {
	driver.Driver
	can driver.Capabilities
}

func (a able) Capabilities() driver.Capabilities { return a.can }

func (able) Ownership(string) driver.Ownership {
	return driver.Ownership{UpperUID: -1, UpperGID: -1}
}

func (able) Acquire(_ context.Context, spec driver.Spec) (driver.Lease, error) {
	return driver.Lease{ID: spec.SandboxID, SandboxID: spec.SandboxID, Handle: []byte("{}")}, nil
}

// newEngine returns a docker driver on an engine whose containers have this isolation.
func newEngine(t *testing.T, tier driver.Tier) (*container.Driver, *engine, func(id string) driver.Spec) {
	t.Helper()
	state := t.TempDir()
	e := &engine{root: t.TempDir(), can: driver.Capabilities{Isolation: []driver.Tier{tier}}}
	d := container.New(container.Docker, e, container.Environment{Get: func(string) string { return "" }})
	return d, e, func(id string) driver.Spec {
		dir := filepath.Join(state, "sandboxes", id)
		upper := filepath.Join(dir, "upper")
		if err := os.MkdirAll(upper, 0o755); err != nil {
			t.Fatal(err)
		}
		return driver.Spec{
			SandboxID: id, Name: id, StateDir: dir, Workspace: driver.Workspace{Path: "/work", Upper: upper},
			Base: &driver.Base{Image: "sha256:1", Engine: "unix:///x.sock", Shown: "shell", Runtime: "other"},
		}
	}
}

var full = driver.Tier{Isolation: sandbox.IsolationFull, Available: true}

// A container that cannot isolate a place is refused with its runtime and what
// it lacks, and nothing of it stays.
func TestRuntimeWithoutWalls(t *testing.T) {
	d, e, spec := newEngine(t, driver.Tier{Isolation: sandbox.IsolationFull, Missing: []string{"its kernel is a toy"}})
	box := spec("box")
	_, err := d.Acquire(t.Context(), box)
	if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), `the runtime "other": its kernel is a toy`) || fault.HintOf(err) == "" {
		t.Errorf("refused with: %v (%s)", err, fault.HintOf(err))
	}
	if _, err := os.Stat(filepath.Join(box.StateDir, container.File)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the sandbox has a container: %v", err)
	}
	if got := e.ops(); got != "ensure list" { // listed, to be removed; this engine has none
		t.Errorf("the engine was asked for %s", got)
	}
	// Without a runtime of its own, the fix for the kernel is reported.
	d, _, spec = newEngine(t, driver.Tier{Isolation: sandbox.IsolationFull, Missing: []string{"no namespaces"}, Mend: []string{"sudo sysctl -w one=0"}})
	box = spec("box")
	box.Base.Runtime = ""
	if _, err := d.Acquire(t.Context(), box); !strings.Contains(fault.HintOf(err), "sudo sysctl -w one=0  # where Docker runs") {
		t.Errorf("what mends it is %q: %v", fault.HintOf(err), err)
	}
	d, e, spec = newEngine(t, full) // the control
	if _, err := d.Acquire(t.Context(), spec("box")); err != nil {
		t.Errorf("with full isolation: %v", err)
	}
	if runtime := e.did[0].Machine.Runtime; runtime != "other" {
		t.Errorf("the container was made with the runtime %q", runtime)
	}
}

// The containers of a state directory are those that its engines list, with the
// sandboxes in them; an engine that is away is reported, and none is asked in
// vain.
func TestMade(t *testing.T) {
	d, e, spec := newEngine(t, full)
	first, second := spec("first"), spec("second")
	root := filepath.Dir(filepath.Dir(first.StateDir))
	if made, err := d.Made(t.Context(), root); err != nil || len(made) > 0 || e.ops() != "" {
		t.Errorf("before the first: %v, %v, asked for %s", made, err, e.ops())
	}
	for _, one := range []driver.Spec{first, second} {
		if _, err := d.Acquire(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	name := e.did[0].Machine.Name
	mine := container.Record{Name: name, Shown: "shell", State: root}
	e.kept = []container.Kept{
		{Record: mine, Running: true, Bytes: 7},
		{Record: container.Record{Name: "litterbox-empty", Shown: "other", State: root}, Bytes: -1},
		{Record: container.Record{Name: "foreign", State: "/elsewhere"}}, // an engine may answer anything
	}
	list := func() []driver.Made {
		t.Helper()
		made, err := d.Made(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	want := []driver.Made{
		{Name: name, Image: "shell", Engine: "unix:///x.sock", Running: true, Sandboxes: []string{"first", "second"}, Bytes: 7},
		{Name: "litterbox-empty", Image: "other", Engine: "unix:///x.sock", Bytes: -1},
	}
	if name > "litterbox-empty" {
		want[0], want[1] = want[1], want[0]
	}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("made (- want, + got):\n%s", diff)
	}
	if err := d.Unmake(t.Context(), root, "foreign"); err != nil || strings.Contains(e.ops(), "remove") {
		t.Errorf("a foreign one was removed: %v, asked for %s", err, e.ops())
	}
	e.away = fault.New(fault.Unavailable, "Docker does not answer")
	want = []driver.Made{{Name: name, Image: "shell", Engine: "unix:///x.sock", Sandboxes: []string{"first", "second"}, Bytes: -1, Trouble: "Docker does not answer"}}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("while it is away (- want, + got):\n%s", diff)
	}
	if err := d.Unmake(t.Context(), root, name); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("removed while it is away: %v", err)
	}
	e.away = nil
	if err := d.Unmake(t.Context(), root, name); err != nil || !strings.HasSuffix(e.ops(), "remove") {
		t.Errorf("removed: %v, asked for %s", err, e.ops())
	}
}
