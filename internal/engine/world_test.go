package engine_test

import (
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/fake"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/keeper/inprocess"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// world is a repository, a state directory and an engine, in which places are
// goroutines (package fake) and so are keepers (package inprocess).
type world struct {
	*engine.Engine
	dir     string // the human's checkout
	machine *fake.Machine
	keepers *inprocess.Keepers
	store   *store.Store
}

func newWorld(t *testing.T) *world { return newWorldOf(t, fake.Options{}) }

// newWorldOf is newWorld with a variant of the driver.
func newWorldOf(t *testing.T, options fake.Options) *world {
	t.Helper()
	gittest.Home(t)
	w := &world{dir: t.TempDir(), machine: fake.NewMachine()}
	gittest.Git(t, w.dir, "init", "-q")
	gittest.Write(t, w.dir, "README", "hello\n")
	gittest.Git(t, w.dir, "add", ".")
	gittest.Git(t, w.dir, "commit", "-qm", "first")
	var err error
	if w.store, err = store.Open(filepath.Join(t.TempDir(), "state")); err != nil {
		t.Fatal(err)
	}
	d := fake.New(w.machine, options)
	drivers := driver.NewSet(
		driver.Entry{Name: d.Name(), Make: func() driver.Driver { return d }, Default: true},
		driver.Entry{Name: "weak", Make: func() driver.Driver { return weak{fake.New(w.machine, fake.Options{Defect: fake.PretendsToIsolate})} }},
	)
	w.keepers = &inprocess.Keepers{Drivers: drivers}
	t.Cleanup(w.keepers.Close)
	w.Engine = engine.New(engine.Options{Store: w.store, Drivers: drivers, Keepers: w.keepers})
	return w
}

// weak is a second driver, of a tier that isolates less.
type weak struct{ fake.Driver }

func (weak) Name() string { return "weak" }
