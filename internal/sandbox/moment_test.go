package sandbox_test

import (
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

func TestSilenceIsJudgedByTheTimeAwake(t *testing.T) {
	t.Parallel()
	const boot = "0b9a1f2e"
	today := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	now := sandbox.Moment{Boot: boot, Awake: time.Hour}
	year := 365 * 24 * time.Hour
	type test struct {
		beat    sandbox.Moment
		expires time.Time
		want    bool
	}
	tests := func(silence time.Duration) map[string]test {
		return map[string]test{
			"just now":                                  {sandbox.Moment{Boot: boot, Awake: time.Hour}, today.Add(time.Minute), false},
			"the clock was set a year forward":          {sandbox.Moment{Boot: boot, Awake: time.Hour - time.Minute}, today.Add(-year), false},
			"the clock was set a year back":             {sandbox.Moment{Boot: boot, Awake: time.Hour - 2*silence}, today.Add(year), true},
			"the last moment":                           {sandbox.Moment{Boot: boot, Awake: time.Hour - silence}, today, false},
			"a moment too late":                         {sandbox.Moment{Boot: boot, Awake: time.Hour - silence - 1}, today.Add(time.Minute), true},
			"before the machine was started anew":       {sandbox.Moment{Boot: "77aa", Awake: time.Hour}, today.Add(time.Minute), true},
			"of this run, but later than now: not true": {sandbox.Moment{Boot: boot, Awake: time.Hour + 1}, today.Add(time.Minute), true},
			"an older program's, in time":               {sandbox.Moment{}, today.Add(time.Second), false},
			"an older program's, too late":              {sandbox.Moment{}, today.Add(-time.Second), true},
		}
	}
	for name, test := range tests(sandbox.HoldSilence) {
		agent := sandbox.Agent{Beat: test.beat, ExpiresAt: test.expires}
		if got := agent.Expired(now, today); got != test.want {
			t.Errorf("hold, %s: expired %t, want %t", name, got, test.want)
		}
	}
	for name, test := range tests(sandbox.LeaseSilence) {
		lease := sandbox.Lease{Beat: test.beat, ExpiresAt: test.expires}
		if got := lease.Expired(now, today); got != test.want {
			t.Errorf("lease, %s: expired %t, want %t", name, got, test.want)
		}
	}
}
