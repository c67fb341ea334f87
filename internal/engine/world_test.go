package engine_test

import (
	"os"
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
	clock   *clock
}

func newWorld(t *testing.T) *world { return newWorldOf(t, fake.Options{}) }

// newWorldOf is newWorld with a variant of the driver.
func newWorldOf(t *testing.T, options fake.Options) *world {
	t.Helper()
	gittest.Home(t)
	return newWorldAt(t, t.TempDir(), options)
}

// newWorldAt makes a world below base, or opens the one that is there: a machine
// on which nothing runs, with the disk of another.
func newWorldAt(t *testing.T, base string, options fake.Options) *world {
	t.Helper()
	w := &world{dir: filepath.Join(base, "project"), machine: fake.NewMachine(), clock: &clock{}}
	if err := os.Mkdir(w.dir, 0o755); err == nil {
		gittest.Git(t, w.dir, "init", "-q")
		gittest.Write(t, w.dir, "README", "hello\n")
		gittest.Git(t, w.dir, "add", ".")
		gittest.Git(t, w.dir, "commit", "-qm", "first")
	} else if !os.IsExist(err) {
		t.Fatal(err)
	}
	var err error
	if w.store, err = store.Open(filepath.Join(base, "state")); err != nil {
		t.Fatal(err)
	}
	d := fake.New(w.machine, options)
	drivers := driver.NewSet(
		driver.Entry{Name: d.Name(), Make: func() driver.Driver { return d }, Default: true},
		driver.Entry{Name: "weak", Make: func() driver.Driver { return weak{fake.New(w.machine, fake.Options{Defect: fake.PretendsToIsolate})} }},
	)
	w.keepers = &inprocess.Keepers{Drivers: drivers}
	t.Cleanup(w.keepers.Close)
	w.Engine = engine.New(engine.Options{Store: w.store, Drivers: drivers, Keepers: w.keepers, Clock: w.clock.of()})
	return w
}

// weak is a second driver, of a tier that isolates less.
type weak struct{ fake.Driver }

func (weak) Name() string { return "weak" }
