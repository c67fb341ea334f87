package guest

import (
	"runtime/debug"
	"sync"
	"time"
)

// idle gives memory back to the system a while after the last stream has
// ended: most sandboxes wait for somebody most of the time, and many of them
// stand on one machine.
type idle struct {
	mu     sync.Mutex
	active int
	timer  *time.Timer
}

// begin counts a stream; end uncounts it.
func (i *idle) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.active++
	if i.timer != nil {
		i.timer.Stop()
	}
}

func (i *idle) end() {
	const after = 3 * time.Second
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.active--; i.active == 0 {
		i.timer = time.AfterFunc(after, debug.FreeOSMemory)
	}
}
