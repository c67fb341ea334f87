package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// AgentSeen is the name of a file in the sandbox's directory that says that an
// agent has worked there.
const AgentSeen = "agent.seen"

// IdleStopAgents is how long a sandbox in which an agent has worked may go
// without clients before it is stopped, unless its configuration says
// otherwise. A process left running by a client that is gone would run forever.
const IdleStopAgents = 2 * time.Hour

const (
	// idleLook is the longest time between two checks for activity: one at each
	// heartbeat.
	idleLook = heartbeat
	// One part in idleShare of the time on a processor, and more, is work. A
	// waiting guest, and the coarse counting of some systems, take less.
	idleShare = 20
	// idleSlack beyond that is never work.
	idleSlack = 100 * time.Millisecond
	// idleGrace is what processes get between TERM and KILL.
	idleGrace = 3 * time.Second
)

// idleStop is how long the sandbox may idle before it is stopped; 0 is forever.
func (k *keeper) idleStop() time.Duration {
	k.mu.Lock()
	after := k.rules.IdleStop
	k.mu.Unlock()
	if after < 0 {
		return 0
	}
	if after == 0 {
		if _, err := os.Stat(filepath.Join(k.order.Spec.StateDir, AgentSeen)); errors.Is(err, fs.ErrNotExist) {
			return 0
		}
		return IdleStopAgents
	}
	return after
}

// stopIdle ends the sandbox when no client has come in a while, no one is
// connected to one of its ports and nothing in it works. Its files, its branch
// and its home stay; the next command commits what is there and starts it
// again, services included.
func (k *keeper) stopIdle(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	since, seen := time.Now(), k.asked()
	at, used := since, time.Duration(-1)
	for {
		after := k.idleStop()
		timer.Stop()
		if after > 0 && after/4 < idleLook {
			timer.Reset(after / 4)
		}
		select {
		case <-ctx.Done():
			return
		case <-k.idle.beat:
		case <-timer.C:
		}
		now, asked := time.Now(), k.asked()
		busy := asked != seen || k.ports.Active() > 0
		if m, err := k.driver.CollectMetrics(ctx, k.driverLease()); err == nil && m.CPU >= 0 {
			busy = busy || used >= 0 && m.CPU-used > now.Sub(at)/idleShare+idleSlack
			used = m.CPU
		}
		at, seen = now, asked
		if busy || k.idle.busy() {
			since = now
			continue
		}
		if after = k.idleStop(); after == 0 || now.Sub(since) < after || !k.idle.close(k) {
			continue
		}
		k.record(sandbox.EventStopped, map[string]string{"reason": "idle"})
		if err := k.stop(context.WithoutCancel(ctx), idleGrace); err != nil {
			fmt.Fprintln(os.Stderr, "keeper: cannot stop what is idle:", err)
		}
		k.once.Do(func() { close(k.ended) })
		return
	}
}

// asked counts the clients so far.
func (k *keeper) asked() int {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	return k.idle.asked
}

// busy reports whether a client is connected, or a human has paused it: what
// was paused on request stays paused.
func (i *idle) busy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.clients > 0 || i.paused == sandbox.PausedByUser
}

// close lets no other client begin, unless one has begun already.
func (i *idle) close(k *keeper) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.clients > 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lease.State = sandbox.LeaseReleased
	return true
}
