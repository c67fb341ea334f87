package keeper

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// supervisor looks at what the sandbox uses. It keeps the limits that the
// driver does not, by ending what is too much, and records every limit that was
// reached, no matter what keeps it.
//
// How often it looks depends on what can happen until the next time: not at all
// while the guest is alone and no client is connected, several times a second
// while something runs, and more often the nearer memory comes to its limit.
type supervisor struct {
	k    *keeper
	wake chan struct{}
	beat chan struct{} // signaled at each heartbeat, when the machine is awake anyway

	mu     sync.Mutex // one look at a time; guards the rest
	last   driver.Metrics
	storms int   // looks in a row at which forks were refused
	over   int   // looks in a row at which memory was above its limit
	held   int64 // what sockets held when it was asked last
	spared int64 // files in memory that were there when everything had been ended
	disk   diskWatch
	far    farDisk
	budget budget
	found  []Reached // the newest
}

func newSupervisor(k *keeper) supervisor {
	return supervisor{
		k: k, wake: make(chan struct{}, 1), beat: make(chan struct{}, 1), last: driver.Unmeasured(),
		disk: newDiskWatch(k.order.Spec.StateDir), budget: newBudget(),
	}
}

// wakeUp has the supervisor look soon: something may have begun.
func (s *supervisor) wakeUp() { signal(s.wake) }

// signal sends to a channel that holds one, unless it does.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// run looks until ctx ends.
func (s *supervisor) run(ctx context.Context) {
	timer := time.NewTimer(lookBusy)
	defer timer.Stop()
	next := time.Now().Add(lookBusy)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			// Not at once: most commands are over before that.
			if time.Until(next) > lookSoon {
				next = time.Now().Add(lookSoon)
				timer.Reset(lookSoon)
			}
			continue
		case <-s.beat:
		case <-timer.C:
		}
		pause := s.check(ctx)
		next = time.Now().Add(pause)
		timer.Reset(pause)
	}
}

// The times between two looks.
const (
	lookAlone  = time.Hour   // only the guest runs, and no client is connected: a heartbeat comes first
	lookIdle   = time.Second // all that runs is waiting
	lookBusy   = 250 * time.Millisecond
	lookSoon   = 50 * time.Millisecond // something has just begun
	lookUrgent = 20 * time.Millisecond

	// fillRate is how fast memory could fill in the meantime, in bytes per second,
	// with several processors touching fresh pages.
	fillRate = 4 << 30
	// socketsWorthALook is how much sockets hold in ordinary use, in bytes.
	socketsWorthALook = 1 << 20
	// busyTime of a processor between two looks is more than waiting takes.
	busyTime = 5 * time.Millisecond
)

// check looks once, acts, and says when to look again.
func (s *supervisor) check(ctx context.Context) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.k
	if k.why() != "" {
		return lookAlone
	}
	m, err := k.driver.CollectMetrics(ctx, k.driverLease())
	if err != nil {
		return lookIdle // gone, or of a driver that does not measure
	}
	if m.Unlimited {
		k.limitAgain(ctx)
	}
	k.mu.Lock()
	limits, kept := k.rules.Effective, k.lease.InForce
	k.mu.Unlock()
	busy := m.CPU-s.last.CPU > busyTime || m.CPU < 0
	if limits.Memory > 0 && kept[sandbox.LimitMemory] == "keeper" {
		// A process that only waits fills nothing, and the guest is left alone.
		if busy || s.held > socketsWorthALook {
			s.held = s.sockets(ctx)
		}
		m.Memory += s.held
	}
	s.memory(ctx, limits, kept[sandbox.LimitMemory] == "keeper", m)
	s.processes(ctx, limits, kept[sandbox.LimitPIDs] == "keeper", m)
	s.files(ctx, limits)
	s.last = m
	switch {
	case m.Processes == 1 && k.idle.alone():
		return lookAlone
	case limits.Memory > 0 && kept[sandbox.LimitMemory] == "keeper" && busy:
		left := time.Duration(float64(limits.Memory-m.Memory) / fillRate * float64(time.Second))
		return min(lookBusy, max(lookUrgent, left))
	case busy || !k.idle.alone():
		return lookBusy
	}
	return lookIdle
}

// sockets is how much the sandbox's sockets hold. The guest is asked, because
// that can only be seen in the sandbox's network; one that does not answer is
// measured by its processes alone, as is one of an older version.
func (s *supervisor) sockets(ctx context.Context) int64 {
	const patience = time.Second
	brief, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stream, err := s.k.wire.open()
	if err != nil {
		return 0
	}
	defer stream.Close()
	held, err := wire.SocketMemory(brief, stream)
	if err != nil {
		return 0
	}
	return held
}

// alone reports whether no client is connected.
func (i *idle) alone() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.clients == 0
}

// memory ends the largest process when nothing else limits memory, and all of
// them when that is not enough or not fast enough.
func (s *supervisor) memory(ctx context.Context, limits sandbox.Limits, mine bool, m driver.Metrics) {
	limit := "memory reached its limit of " + limits.Text(sandbox.LimitMemory)
	if !mine {
		if before := max(0, s.last.OOMKills); m.OOMKills > before && s.last.Uptime >= 0 {
			s.report(ReachedMemory, fmt.Sprintf("%s: the kernel ended %s", limit, count(m.OOMKills-before)))
		}
		return
	}
	// Files in memory outlive their writers. It must remain possible to delete
	// them, so what was there is spared until it grows.
	s.spared = min(s.spared, max(0, m.Scratch))
	used := m.Memory - s.spared
	if limits.Memory <= 0 || used <= limits.Memory {
		s.over = 0
		return
	}
	s.over++
	most := 1
	if s.over > 3 || used > limits.Memory+limits.Memory/4 || m.Scratch > limits.Memory/2 {
		most = 0
		s.spared = min(m.Scratch, limits.Memory+limits.Memory/4)
	}
	s.report(ReachedMemory, limit+": "+s.kill(ctx, most))
}

// stormLooks is how often in a row forks may be refused before it is a storm
// and not a program that came near the limit.
const stormLooks = 4

// processes ends everything when forks are refused again and again: the rest of
// a fork bomb keeps a processor busy forever.
func (s *supervisor) processes(ctx context.Context, limits sandbox.Limits, mine bool, m driver.Metrics) {
	refused := m.RefusedPIDs > max(0, s.last.RefusedPIDs) && s.last.Uptime >= 0
	// A process that is just being forked may be missing from the count.
	full := limits.PIDs > 0 && int64(m.Threads) >= limits.PIDs-limits.PIDs/32
	if m.RefusedPIDs >= 0 {
		full = refused
	}
	if !full {
		s.storms = 0
		return
	}
	s.storms++
	limit := "processes and threads reached their limit of " + limits.Text(sandbox.LimitPIDs)
	switch {
	case mine || s.storms >= stormLooks:
		s.storms = 0
		s.report(ReachedPIDs, limit+": "+s.kill(ctx, 0))
	case s.storms == 1:
		s.report(ReachedPIDs, limit+": some could not be started")
	}
}

// files ends everything when there is too much on disk and it still grows.
func (s *supervisor) files(ctx context.Context, limits sandbox.Limits) {
	if carrier := s.k.carrier(); carrier != nil {
		files := carrier.Files(s.k.driverLease())
		if what := s.far.exceeded(ctx, files, limits.Disk); what != "" {
			s.report(ReachedDisk, what+": "+s.kill(ctx, 0))
			s.far.ended(ctx, files)
		}
		return
	}
	if what := s.disk.exceeded(limits.Disk); what != "" {
		s.report(ReachedDisk, what+": "+s.kill(ctx, 0))
		s.disk.ended()
	}
}

// killPatience is how long the guest may take to end others. It needs neither
// a process nor much memory for that.
const killPatience = 5 * time.Second

// kill has the guest end processes and names them. A guest that can be reached
// and does not answer ends with them.
func (s *supervisor) kill(ctx context.Context, most int) string {
	type answer struct {
		ended []wire.Process
		err   error
	}
	answered := make(chan answer, 1)
	brief, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	go func() {
		stream, err := s.k.wire.open()
		if err != nil {
			answered <- answer{err: err}
			return
		}
		defer stream.Close()
		ended, err := wire.Kill(brief, stream, most)
		answered <- answer{ended, err}
	}()
	select {
	case got := <-answered:
		if got.err == nil {
			return "ended " + named(got.ended, most)
		}
	case <-brief.Done():
	}
	if ctx.Err() != nil {
		return "the sandbox is ending"
	}
	// Only a guest that could answer and does not is ended: nothing is known of
	// one that cannot be reached.
	if err := s.k.driver.Attach(ctx, s.k.driverLease()); err != nil || !s.k.wire.cutSince().IsZero() {
		return "nothing could be ended: the sandbox does not answer"
	}
	if err := s.k.driver.Destroy(ctx, s.k.driverLease(), true); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: cannot end what is too much:", err)
		return "nothing could be ended: " + err.Error()
	}
	return "ended the sandbox, whose guest did not answer"
}

// named briefly says which processes were ended.
func named(ended []wire.Process, most int) string {
	switch {
	case len(ended) == 0:
		return "nothing that was still there"
	case most == 0 && len(ended) > 1:
		return "everything that ran"
	}
	const room = 60
	command := []rune(ended[0].Command)
	if len(command) > room {
		command = append(command[:room], '…')
	}
	return string(command)
}

func count(n int64) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}
