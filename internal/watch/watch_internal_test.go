package watch

import (
	"testing"
	"time"
)

func TestSettled(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for ago, want := range map[time.Duration]bool{
		0: false, settle: false, settle + 1: true, 10 * 365 * 24 * time.Hour: true,
		-time.Nanosecond: true, -24 * time.Hour: true, // the clock was set back since
	} {
		if got := settled(now, now.Add(-ago)); got != want {
			t.Errorf("what was told %v ago is settled: %t, want %t", ago, got, want)
		}
	}
}
