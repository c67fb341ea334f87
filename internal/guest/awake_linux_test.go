package guest

import (
	"testing"
	"testing/synctest"
	"time"
)

// The time of a pause does not count: a step that takes longer than it can is
// taken for a pause.
func TestPassed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ step, took, want time.Duration }{
		{time.Second, time.Second, time.Second},
		{time.Second, 1900 * time.Millisecond, 1900 * time.Millisecond},
		{time.Second, time.Hour, time.Second},
		{300 * time.Millisecond, time.Hour, 300 * time.Millisecond},
	} {
		if got := passed(c.step, c.took); got != c.want {
			t.Errorf("a step of %s that took %s counts %s, want %s", c.step, c.took, got, c.want)
		}
	}
}

func TestAwakeCountsToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a := newAwake(90*time.Second + 500*time.Millisecond)
		if at := <-a.over; at.Sub(began) != 90*time.Second+500*time.Millisecond {
			t.Errorf("it was over after %s", at.Sub(began))
		}
		a.stop()
		stopped := newAwake(time.Hour)
		stopped.stop()
		synctest.Wait()
		select {
		case <-stopped.over:
			t.Error("a stopped one was over")
		default:
		}
	})
}
