package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// A driver is chosen by name, from a repository only after trust; it must be
// accepted where it isolates less, and each later command uses it.
func TestDriverIsChosen(t *testing.T) {
	w := newWorld(t)
	ctx := gittest.Context(t)
	create := func(name, driver string, less bool) (engine.Creation, error) {
		return w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: name, Driver: driver, AllowDegraded: less})
	}
	if _, err := create("a", "nothing", true); fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.HintOf(err), "fake, weak") {
		t.Errorf("an unknown driver: %v", err)
	}
	if _, err := create("a", "weak", false); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("less isolation that is not accepted: %v", err)
	}
	made, err := create("a", "weak", true)
	if err != nil || made.Driver != "weak" || made.Isolation != sandbox.IsolationDegraded ||
		!slices.Contains(made.Notes, "not isolated: it pretends to isolate") {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := w.Stop(ctx, engine.StopRequest{Dir: w.dir, Name: "a"}); err != nil {
		t.Fatal(err)
	}
	// Its record names it, and says that less was accepted.
	if err := w.exec(ctx, "a", "true"); err != nil {
		t.Error(err)
	}
	for _, one := range w.keepers.Started() {
		if one.Order.Driver != "weak" {
			t.Errorf("its keeper runs the driver %q", one.Order.Driver)
		}
	}
	if _, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "a", Driver: "fake", Argv: []string{"true"}}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a sandbox of another driver than was asked for: %v", err)
	}

	gittest.Write(t, w.dir, ".litterbox.toml", "driver = \"weak\"\n")
	if made, err := create("b", "", true); err != nil || made.Driver != "fake" {
		t.Errorf("without trust: %+v, %v", made, err)
	}
	if _, err := w.Trust(ctx, w.dir); err != nil {
		t.Fatal(err)
	}
	if made, err := create("c", "", true); err != nil || made.Driver != "weak" {
		t.Errorf("after trust: %+v, %v", made, err)
	}
	if made, err := create("d", "fake", false); err != nil || made.Driver != "fake" {
		t.Errorf("the flag goes before the configuration: %+v, %v", made, err)
	}
}

// Where the human wants sandboxes to share a machine, new ones have the driver that
// makes one for all, and commands that name the other driver find them.
func TestSharedMachine(t *testing.T) {
	w := newWorld(t)
	ctx := gittest.Context(t)
	one := w.Drivers.Get("fake")
	drivers := driver.NewSet(
		driver.Entry{Name: "fake", Make: func() driver.Driver { return one }, Default: true},
		driver.Entry{Name: "single", Shared: "shared", Make: func() driver.Driver { return named{one, "single"} }},
		driver.Entry{Name: "shared", Make: func() driver.Driver { return named{one, "shared"} }},
	)
	w.keepers.Drivers = drivers
	w.Engine = engine.New(engine.Options{Store: w.store, Drivers: drivers, Keepers: w.keepers})
	create := func(name, chosen string) string {
		t.Helper()
		made, err := w.Create(ctx, engine.CreateRequest{Dir: w.dir, Name: name, Driver: chosen})
		if err != nil {
			t.Fatal(err)
		}
		return made.Driver
	}
	got := []string{create("before", "single")}
	w.configure(t, "[vm]\nshare = true\n")
	got = append(got, create("after", "single"), create("other", ""))
	if want := []string{"single", "shared", "fake"}; !slices.Equal(got, want) {
		t.Errorf("their drivers are %q, not %q", got, want)
	}
	for name, wanted := range map[string]string{"before": "single", "after": "single"} {
		if _, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: name, Driver: wanted, Argv: []string{"true"}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.Exec(ctx, engine.ExecRequest{Dir: w.dir, Name: "before", Driver: "shared", Argv: []string{"true"}}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the one of before as a shared one: %v", err)
	}
}

// named is a driver by another name.
type named struct {
	driver.Driver
	name string
}

func (n named) Name() string { return n.name }
