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

// IdleStopAgents is after how long a sandbox in which an agent has worked is
// stopped when nobody asks for it any more, unless its configuration says
// otherwise. What a client that has gone left running would run for ever.
const IdleStopAgents = 2 * time.Hour

const (
	// idleLook is how often it is looked whether anything happens, at the least
	// often.
	idleLook = time.Minute
	// idleShare of the time on a processor, and more, is work: one part of so
	// many. A guest that waits, and how coarsely some systems count, take less.
	idleShare = 20
	// idleSlack beside that is no work in any case.
	idleSlack = 100 * time.Millisecond
	// idleGrace is what processes get between TERM and KILL.
	idleGrace = 3 * time.Second
)

// idleStop is after how long the sandbox is stopped; 0 is never.
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

// stopIdle ends the sandbox when nobody has asked for it in a while, nobody is
// connected to a port of it and nothing in it works. Its files, its branch and
// its home stay; the next command commits what lies there and starts it again,
// services included.
func (k *keeper) stopIdle(ctx context.Context) {
	timer := time.NewTimer(idleLook)
	defer timer.Stop()
	since, seen := time.Now(), k.asked()
	at, used := since, time.Duration(-1)
	for {
		after := k.idleStop()
		look := idleLook
		if after > 0 {
			look = min(idleLook, after/4)
		}
		timer.Reset(look)
		select {
		case <-ctx.Done():
			return
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

// asked counts how often clients have asked so far.
func (k *keeper) asked() int {
	k.idle.mu.Lock()
	defer k.idle.mu.Unlock()
	return k.idle.asked
}

// busy reports whether a client is connected, or a human has paused it: what
// somebody asked to stand still goes on standing.
func (i *idle) busy() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.clients > 0 || i.paused == sandbox.PausedByUser
}

// close has nobody else begin, unless somebody has begun.
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
