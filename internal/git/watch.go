package git

import (
	"syscall"
	"time"
)

// taken is what a process has of memory, and has had of processors.
type taken struct {
	memory int64
	time   time.Duration
}

// signalMemory ends a process that takes more memory than its bounds say, where a
// watch does that: git never gets it otherwise.
const signalMemory = syscall.SIGXFSZ

// watch measures a process at each tick until that fails, because it has ended, and
// signals when it takes more than its bounds say: as the kernel does it first, and so
// that nothing survives at the next tick.
func watch(b Bounds, tick <-chan time.Time, measure func() (taken, error), signal func(syscall.Signal)) {
	over := false
	for range tick {
		now, err := measure()
		memory, processors := b.Memory > 0 && now.memory > b.Memory, b.time > 0 && now.time > b.time
		switch {
		case err != nil:
			return
		case over && (memory || processors):
			signal(syscall.SIGKILL)
		case memory:
			signal(signalMemory)
		case processors:
			signal(syscall.SIGXCPU)
		}
		over = memory || processors
	}
}
