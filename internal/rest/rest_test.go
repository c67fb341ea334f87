package rest

import (
	"math"
	"runtime/debug"
	"testing"
)

// settings reads how garbage is collected.
func settings() (percent int, limit int64) {
	percent = debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return percent, debug.SetMemoryLimit(-1)
}

func TestRest(t *testing.T) {
	percent, limit := settings()
	t.Cleanup(func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) })
	r := New(30)
	r.timer.Stop() // the test says when it is quiet
	asleep := func() {
		t.Helper()
		if percent, limit := settings(); !r.Resting() || percent != -1 || limit != most {
			t.Errorf("at rest garbage is collected at %d percent and %d bytes", percent, limit)
		}
	}
	awake := func() {
		t.Helper()
		if percent, limit := settings(); r.Resting() || percent != 30 || limit != math.MaxInt64 {
			t.Errorf("awake garbage is collected at %d percent and %d bytes", percent, limit)
		}
	}
	if now, _ := settings(); r.Resting() || now != percent {
		t.Errorf("at the start garbage is collected at %d percent, not at %d", now, percent)
	}
	r.sleep()
	asleep()
	r.Begin()
	awake()
	r.Begin()
	r.End()
	r.sleep() // a timer that was late
	awake()
	r.End()
	r.timer.Stop()
	r.sleep()
	asleep()
}
