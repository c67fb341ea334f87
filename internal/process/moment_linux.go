package process

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Now is this moment by the clock of the machine that nobody sets.
func Now() sandbox.Moment {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return sandbox.Moment{} // not known: the time of day counts
	}
	return sandbox.Moment{Boot: boot(), Awake: time.Duration(now.Nano())}
}
