package process

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Now is the present on the machine's clock that is never set.
func Now() sandbox.Moment {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return sandbox.Moment{} // not known: the time of day counts
	}
	return sandbox.Moment{Boot: boot(), Awake: time.Duration(now.Nano())}
}
