package guest

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// executions are the commands that run for clients at this moment.
type executions struct {
	mu     sync.Mutex
	all    map[*execution]wire.Running
	starts sync.WaitGroup // those that are being started
	closed bool           // no further command begins
}

// enter lets a command be started until started is called; it reports whether
// one may.
func (s *executions) enter(stopping bool) (started func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || stopping {
		return nil, false
	}
	s.starts.Add(1)
	return sync.OnceFunc(s.starts.Done), true
}

// close lets no further command start, and returns when those that were being
// started are registered.
func (s *executions) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.starts.Wait()
}

// begin registers a command. The caller calls over when its process, and those
// told to end with it, are gone.
func (s *executions) begin(e *execution, r *wire.Exec) (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*execution]wire.Running{}
	}
	s.all[e] = wire.Running{Cycle: r.Iteration, PID: e.child.pid, Started: e.child.started, Terminal: r.Terminal != nil}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, e)
	}
}

func (s *executions) list() []wire.Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []wire.Running
	for _, one := range s.all {
		all = append(all, one)
	}
	return all
}

// end asks every command to end, followed by a kill when its grace is over. A
// shell on a terminal ignores TERM and obeys HUP.
func (s *executions) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e, running := range s.all {
		if running.Terminal {
			e.end(unix.SIGHUP, unix.SIGTERM)
		} else {
			e.end(unix.SIGTERM)
		}
	}
}

// quiesce ends everything inside but the guest, which still answers questions
// about the result: services in the order of stopping, then the rest. No
// command and no service begins afterwards.
func (g *guest) quiesce(grace time.Duration) (wire.Empty, error) {
	g.executions.close()
	return wire.Empty{}, g.endAll(grace, g.executions.end)
}

// endAll ends services and then every other process, first by begin and TERM
// and after the grace by KILL.
func (g *guest) endAll(grace time.Duration, begin func()) error {
	const (
		kernelTime  = 20 * time.Second // for killed processes to end on a busy machine
		serviceTime = 20 * time.Second // for services, which have a grace of their own
	)
	begin() // while a service takes its time, editors may save
	g.services.close(time.Now().Add(serviceTime))
	g.children.signalAll(unix.SIGTERM)
	g.children.signalAll(unix.SIGCONT) // a stopped process cannot obey
	for deadline := time.Now().Add(grace); ; {
		if g.children.reap() {
			return nil
		}
		if left := time.Until(deadline); left <= 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	for deadline := time.Now().Add(kernelTime); time.Now().Before(deadline); {
		g.children.signalAll(unix.SIGKILL)
		if g.children.reap() {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fault.New(fault.Timeout, "cannot end every process inside: some do not die")
}
