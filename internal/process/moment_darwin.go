package process

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Now is the present moment. CLOCK_UPTIME_RAW stands still while the machine sleeps,
// as Linux's CLOCK_MONOTONIC does and this system's does not (clock_gettime(3)).
func Now() sandbox.Moment {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_UPTIME_RAW, &t); err != nil {
		return sandbox.Moment{}
	}
	return sandbox.Moment{Boot: boot(), Awake: time.Duration(t.Nano())}
}
