package guest

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/service/journal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// serviceVariable tells the processes of a service which one it is. It also
// identifies processes that the service detaches.
const serviceVariable = "LITTERBOX_SERVICE"

// maxMark stays below values that a program could take for unlimited.
const maxMark = 1 << 60

// step feeds the unit's machine an event, and does what it says. The caller
// holds mu, and calls settle afterwards.
func (s *supervisor) step(u *unit, e service.Event) {
	before := u.machine.State
	action := u.machine.Step(e, time.Now())
	if state := u.machine.State; state != before && state.Settled() && s.watcher != nil {
		s.watcher(u.status())
	}
	switch action {
	case service.Launch:
		s.launch(u)
	case service.End:
		u.cancelWatch()
		go s.end(u, u.run, u.child, u.spec, u.output)
	case service.Notify:
		u.journal.Note(time.Now(), "restart: sent %s", u.spec.Signals.Restart)
		s.g.children.signalOne(u.child, signalOf(u.spec.Signals.Restart, unix.SIGHUP))
	case service.Rest:
		u.restarts++
		s.rest(u)
	}
}

// news is an event of one run. It comes from a goroutine of its own, possibly
// after the next run has begun.
func (s *supervisor) news(u *unit, run int, e service.Event, also func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.run != run {
		return
	}
	if also != nil {
		also()
	}
	s.step(u, e)
	s.settle()
}

func (u *unit) cancelWatch() {
	if u.cancel != nil {
		u.cancel()
		u.cancel = nil
	}
}

// launch starts the service's process in a session of its own.
func (s *supervisor) launch(u *unit) {
	u.run++
	u.child, u.output, u.problem = nil, nil, ""
	u.nextStart = time.Time{}
	failed := func(err error) {
		u.problem = err.Error()
		u.journal.Note(time.Now(), "%s", u.problem)
		s.step(u, service.Failed)
	}
	var env []string
	for key, value := range u.spec.Env {
		env = append(env, key+"="+value)
	}
	env = append(env, serviceVariable+"="+u.spec.Name)
	request := &wire.Exec{Env: env}
	for _, arg := range u.spec.Command {
		request.Argv = append(request.Argv, []byte(arg))
	}
	c, err := s.g.prepare(request)
	if err != nil {
		failed(err)
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		failed(err)
		return
	}
	defer null.Close()
	output, theirs, err := newOutlet(u.journal)
	if err != nil {
		failed(err)
		return
	}
	defer theirs.Close()
	c.files = []uintptr{null.Fd(), theirs.Fd(), theirs.Fd()}
	c.mark = rand.Uint64N(maxMark) + 1
	before := coarseNow()
	child, err := s.g.launch(c)
	if err != nil {
		output.file.Close()
		failed(err)
		return
	}
	u.child, u.output, u.startedAt = child, output, child.started
	u.journal.Note(child.started, "started (pid %d)", child.pid)
	go output.pump()
	run := u.run
	go s.await(u, run, child, output)
	ctx, cancel := context.WithCancel(context.Background())
	u.cancel = cancel
	go s.watch(ctx, u, run, probe{g: s.g, ready: u.spec.Ready, since: before, env: env})
}

// await waits for the end of the process itself.
func (s *supervisor) await(u *unit, run int, child *child, output *outlet) {
	defer close(output.recorded)
	<-child.done
	output.wait(200 * time.Millisecond) // its last output comes before its end
	exit := exitOf(child)
	text := "ended with exit code " + strconv.Itoa(exit.Code)
	if exit.Signal != "" {
		text = "was ended by SIG" + exit.Signal
	}
	u.journal.Note(time.Now(), "%s", text)
	event := service.Crashed
	if exit.Code == 0 {
		event = service.Ended
	}
	s.news(u, run, event, func() {
		u.last = &service.Ending{Code: exit.Code, Signal: exit.Signal, At: time.Now().UTC()}
		if u.machine.State == service.Starting || u.machine.State == service.Running {
			u.problem = "its process " + text
			if left := s.g.members(u.spec.Name, child); event == service.Ended && len(left) > 0 {
				u.problem = "it went into the background; its command has to stay in the foreground"
			}
		}
	})
}

// watch waits until the service is ready.
func (s *supervisor) watch(ctx context.Context, u *unit, run int, p probe) {
	if !p.ready.Checked() {
		// One that ends at once was never up.
		select {
		case <-ctx.Done():
		case <-time.After(service.Survival):
			s.news(u, run, service.Up, nil)
		}
		return
	}
	timeout := p.ready.Timeout
	if timeout <= 0 {
		timeout = service.DefaultTimeout
	}
	if p.wait(ctx, timeout) {
		u.journal.Note(time.Now(), "ready")
		s.news(u, run, service.Up, nil)
		return
	}
	if ctx.Err() == nil {
		u.journal.Note(time.Now(), "not ready within %s", timeout)
		s.news(u, run, service.TooLate, func() { u.problem = "it was not ready within " + timeout.String() })
	}
}

// rest starts the unit again after its backoff.
func (s *supervisor) rest(u *unit) {
	delay := service.Delay(u.machine.Failures)
	u.nextStart = time.Now().Add(delay).UTC()
	run := u.run
	timer := time.AfterFunc(delay, func() { s.news(u, run, service.Rested, nil) })
	u.cancel = func() { timer.Stop() }
	u.journal.Note(time.Now(), "starts again in %s", delay)
}

// end ends every process of a run: its own signal to the session that the
// service leads, the same to processes that had left that session once the
// service's own process is over (a database's workers are its own to end), and
// KILL to all of them when the grace is over.
func (s *supervisor) end(u *unit, run int, child *child, spec service.Spec, output *outlet) {
	const (
		pause      = 10 * time.Millisecond
		kernelTime = 5 * time.Second // for killed processes to end
	)
	if child == nil {
		s.news(u, run, service.Gone, nil)
		return
	}
	grace := spec.Grace
	if grace <= 0 {
		grace = service.DefaultGrace
	}
	stop := signalOf(spec.Signals.Stop, unix.SIGTERM)
	begin := time.Now()
	asked := map[int]bool{}
	for {
		members := s.g.members(spec.Name, child)
		if len(members) == 0 || time.Since(begin) > grace+kernelTime {
			break
		}
		over := child.over()
		for _, p := range members {
			switch {
			case time.Since(begin) > grace:
				_ = unix.Kill(p.PID, unix.SIGKILL)
			case !asked[p.PID] && (over || p.session == child.pid):
				asked[p.PID] = true
				_ = unix.Kill(p.PID, stop)
				_ = unix.Kill(p.PID, unix.SIGCONT) // a stopped process cannot obey
			}
		}
		time.Sleep(pause)
	}
	if took := time.Since(begin); took > grace {
		u.journal.Note(time.Now(), "did not end within %s and was killed", grace)
	}
	output.wait(500 * time.Millisecond)
	output.file.Close()
	select {
	case <-output.recorded: // how it ended is recorded before the fact that nothing is left
	case <-time.After(kernelTime):
	}
	s.news(u, run, service.Gone, nil)
}

func signalOf(name string, otherwise unix.Signal) unix.Signal {
	if sig := unix.SignalNum("SIG" + name); name != "" && sig != 0 {
		return sig
	}
	return otherwise
}

// outlet carries a service's output to its journal.
type outlet struct {
	file    *os.File
	journal *journal.Journal
	done    chan struct{} // closed when no process holds the other end

	recorded chan struct{} // closed when the process's end is recorded

	mu     sync.Mutex // held from reading a piece until it is in the journal
	passed int64      // bytes that are
}

// newOutlet makes the pipe for standard output and error both, so that their
// lines keep their order.
func newOutlet(j *journal.Journal) (*outlet, *os.File, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return &outlet{file: pollable(p[0]), journal: j, done: make(chan struct{}), recorded: make(chan struct{})}, os.NewFile(uintptr(p[1]), "output"), nil
}

func (o *outlet) pump() {
	defer close(o.done)
	eachPiece(o.file, make([]byte, 8<<10), &o.mu, func(piece []byte) {
		o.journal.Print(time.Now(), piece)
		o.passed += int64(len(piece))
	})
	o.journal.Flush(time.Now())
}

// wait waits for the end of the output, for a while. Output written before is
// in the journal then, however busy the machine.
func (o *outlet) wait(most time.Duration) {
	const (
		pause    = 5 * time.Millisecond
		patience = 30 * time.Second // with a disk that takes no data
	)
	o.mu.Lock()
	owed := o.passed + unread(o.file)
	o.mu.Unlock()
	end := time.Now().Add(most)
	for paid := false; !paid || time.Now().Before(end); {
		select {
		case <-o.done:
			return
		case <-time.After(pause):
		}
		o.mu.Lock()
		paid = o.passed >= owed
		o.mu.Unlock()
		if time.Now().After(end.Add(patience)) {
			return
		}
	}
}
