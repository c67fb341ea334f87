// Package rest lets a process that only waits sleep. A machine has hundreds of them,
// and the runtime wakes each every two minutes to collect garbage that is not there.
// What it holds meanwhile it gives back: free memory, and the pages of its program.
package rest

import (
	"math"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// quiet is how long nothing must be going on before the process rests.
	quiet = 3 * time.Second
	// most is the memory, in bytes, above which garbage is collected at rest too:
	// something may go on that does not count itself.
	most = 64 << 20
)

// Rest counts what is going on in this process. There is one per process, because
// its settings are the process's; nil is for a process that does not rest.
type Rest struct {
	percent int // of the heap, after which garbage is collected while awake

	mu      sync.Mutex
	active  int
	resting bool
	timer   *time.Timer
}

// New makes a Rest for a process in which nothing is going on yet. When it is
// awake again, garbage is collected when the heap has grown by that many
// percent ([debug.SetGCPercent]); a start keeps the usual 100, to be quick.
func New(percent int) *Rest {
	r := &Rest{percent: percent}
	r.timer = time.AfterFunc(quiet, r.sleep)
	return r
}

// Begin counts something that is going on; End uncounts it.
func (r *Rest) Begin() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active++
	r.timer.Stop()
	if r.resting {
		r.resting = false
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(r.percent)
	}
}

// End is called once for each Begin.
func (r *Rest) End() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active--; r.active == 0 {
		r.timer.Reset(quiet)
	}
}

// Resting reports whether the process rests.
func (r *Rest) Resting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resting
}

func (r *Rest) sleep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active > 0 || r.resting {
		return
	}
	r.resting = true
	debug.SetMemoryLimit(most)
	debug.SetGCPercent(-1)
	debug.FreeOSMemory()
	leave()
}
