package driver_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

type nothing struct{ driver.Driver }

// A driver is made once, when it is used, and the others are not.
func TestSetMakesWhatIsUsed(t *testing.T) {
	made := map[string]int{}
	entry := func(name string) driver.Entry {
		return driver.Entry{Name: name, Make: func() driver.Driver { made[name]++; return nothing{} }}
	}
	far := entry("far")
	far.Keeper, far.Default = driver.ProgramFull, true
	set := driver.NewSet(entry("near"), far, entry("other"))
	if made["near"] != 0 || set.Get("near") == nil || set.Get("near") == nil || set.Get("none") != nil {
		t.Error("it does not have what it was given")
	}
	if diff := cmp.Diff(map[string]int{"near": 1}, made); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	if set.Keeper("near") != driver.ProgramSmall || set.Keeper("far") != driver.ProgramFull || set.Default() != "far" {
		t.Error("it forgets what stands in its table")
	}
	if _, err := set.Find("none"); err == nil || fault.HintOf(err) != "one of: near, far, other" {
		t.Errorf("an unknown driver: %v, %s", err, fault.HintOf(err))
	}
}
