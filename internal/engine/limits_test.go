package engine_test

import (
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver/fake"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// A keeper enforces no limit that its driver does not measure: nothing starts
// that only pretends to, whatever isolation is accepted. Limits that can be
// measured are enforced.
func TestLimitThatNothingKeeps(t *testing.T) {
	w := newWorldOf(t, fake.Options{Defect: fake.PretendsToMeasure})
	gittest.Write(t, w.dir, ".litterbox.toml", "limits.pids = 100\nlimits.disk = \"1GiB\"\n")
	create := engine.CreateRequest{Dir: w.dir, Name: "fix", AllowDegraded: true}
	if _, err := w.Create(gittest.Context(t), create); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "cannot keep the limit of pids for") {
		t.Errorf("a limit of pids: %v", err)
	}
	if left := w.machine.Places(); len(left) > 0 {
		t.Errorf("places are left: %v", left)
	}
	w = newWorld(t)
	gittest.Write(t, w.dir, ".litterbox.toml", "limits.pids = 100\nlimits.disk = \"1GiB\"\n")
	create.Dir = w.dir
	if _, err := w.Create(gittest.Context(t), create); err != nil {
		t.Fatal(err)
	}
	for _, limit := range w.one(t).Limits {
		if (limit.Name == "disk" || limit.Name == "pids") && limit.By != "keeper" {
			t.Errorf("the limit of %s is kept by %q", limit.Name, limit.By)
		}
	}
}
