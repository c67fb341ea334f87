package guest

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// defaultGrace is the time between TERM and KILL if a request names none.
const defaultGrace = 2 * time.Second

// Exit codes that stand for more than a number; timeout(1) and every shell use
// them the same way.
const (
	codeTimeout       = 124
	codeNotExecutable = 126
	codeNotFound      = 127
	codeSignal        = 128 // plus its number
)

// execution is one command that runs for a client.
type execution struct {
	g     *guest
	child *child
	stdio *stdio
	grace time.Duration

	interrupted atomic.Pointer[time.Time] // when the client last sent INT or QUIT; nil: never
	ended       atomic.Bool               // the command's process is over: its number must not be signalled
	endOnce     sync.Once
	ending      chan struct{} // closed when the groups were told to end; the rest is set then

	foreground int // the terminal's, at that time
	deadline   time.Time
	killer     *time.Timer
}

// exec runs a command with its streams on x, until it ends.
func (g *guest) exec(x *exchange) (wire.Exit, error) {
	r := x.request.Exec
	if r == nil || len(r.Argv) == 0 {
		return wire.Exit{}, fault.New(fault.Invalid, "cannot run a command without a name")
	}
	started, ok := g.executions.enter(g.stopping())
	if !ok {
		return wire.Exit{}, fault.New(fault.Unavailable, "cannot run a command: the sandbox is shutting down")
	}
	defer started()
	c, err := g.prepare(r)
	if err != nil {
		var missing *notRunnable
		if errors.As(err, &missing) {
			return missing.exit(x.out, r)
		}
		return wire.Exit{}, err
	}
	stdio, err := openStdio(r.Terminal)
	if err != nil {
		return wire.Exit{}, fault.Wrap(fault.Unavailable, err, "cannot open the command's streams")
	}
	c.files, c.tty = stdio.fds(), r.Terminal != nil
	child, err := g.launch(c)
	stdio.closeChildSide()
	if err != nil {
		stdio.close()
		var missing *notRunnable
		if errors.As(err, &missing) {
			return missing.exit(x.out, r)
		}
		return wire.Exit{}, wrap(err, "cannot run %q", string(r.Argv[0]))
	}
	e := &execution{g: g, child: child, stdio: stdio, grace: r.Grace, ending: make(chan struct{})}
	if e.grace <= 0 {
		e.grace = defaultGrace
	}
	defer g.executions.begin(e, r)()
	started()
	return e.run(x, r)
}

// prepare works out what to execute, where and with what environment.
func (g *guest) prepare(r *wire.Exec) (command, error) {
	c := command{dir: g.Workspace}
	if len(r.Dir) > 0 {
		dir, err := g.path(r.Dir)
		if err != nil {
			return command{}, err
		}
		c.dir = dir
	}
	if info, err := os.Stat(c.dir); err != nil {
		return command{}, fault.Wrap(fault.Invalid, errors.Unwrap(err), "cannot run in %q", c.dir)
	} else if !info.IsDir() {
		return command{}, fault.New(fault.Invalid, "cannot run in %q: not a directory", c.dir)
	}
	for _, arg := range r.Argv {
		if strings.IndexByte(string(arg), 0) >= 0 {
			return command{}, fault.New(fault.Invalid, "cannot run %q: an argument holds a NUL byte", string(r.Argv[0]))
		}
		c.argv = append(c.argv, string(arg))
	}
	base := []string{"HOME=" + g.Home}
	own := []string{"PWD=" + c.dir}
	if r.Terminal != nil && r.Terminal.Term != "" {
		own = append(own, "TERM="+r.Terminal.Term)
	}
	c.env = mergeEnv(base, g.Env, g.services.environment(), own, r.Env)
	for _, kv := range c.env {
		if strings.IndexByte(kv, 0) >= 0 {
			return command{}, fault.New(fault.Invalid, "cannot run %q: the environment holds a NUL byte", c.argv[0])
		}
	}
	path, err := lookPath(c.argv[0], c.dir, c.env)
	if err != nil {
		return command{}, err
	}
	c.path = path
	return c, nil
}

// launch starts the command. Like a shell, it handles a text file without an
// interpreter line, and a file that cannot be executed.
func (g *guest) launch(c command) (*child, error) {
	child, err := g.spawner.start(c)
	if errors.Is(err, unix.ENOEXEC) {
		c.argv = append([]string{"/bin/sh", c.path}, c.argv[1:]...)
		c.path = "/bin/sh"
		child, err = g.spawner.start(c)
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, &notRunnable{codeNotFound, c.argv[0], "its interpreter is missing"}
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.E2BIG), errors.Is(err, unix.ETXTBSY):
		return nil, &notRunnable{codeNotExecutable, c.argv[0], err.Error()}
	}
	return child, err
}

// run moves the streams until the command ends, and reports how it ended.
func (e *execution) run(x *exchange, r *wire.Exec) (wire.Exit, error) {
	out := newOutput(x.out, e.stdio.sources)
	out.whole = keepWhole(r.Keep, r.Iteration)
	out.start()
	in := newInput(x.out, e.stdio)
	go in.pump()
	broken := make(chan struct{})
	_ = wire.WriteJSON(x.out, wire.KindStarted, wire.Started{PID: e.child.pid})
	go e.control(x, in, broken)

	var timeout <-chan time.Time
	if r.Timeout > 0 {
		clock := newAwake(r.Timeout)
		defer clock.stop()
		timeout = clock.over
	}
	timedOut := false
	for gone := broken; ; {
		select {
		case <-timeout:
			timedOut = true
			e.end(unix.SIGTERM)
			continue
		case <-gone:
			gone = nil
			e.end(unix.SIGHUP, unix.SIGTERM)
			continue
		case <-e.child.done:
		}
		break
	}
	e.endInterrupted()
	e.ended.Store(true)
	in.close()
	e.endGroups()
	out.drain(broken)
	file := out.settle(r.Iteration)
	kept, keptBytes := out.whole.finish()

	exit := exitOf(e.child)
	exit.Kept, exit.KeptBytes = kept, keptBytes
	if timedOut {
		exit.Code, exit.TimedOut = codeTimeout, true
	}
	// A list that cannot be read is no reason to lose the exit code.
	if left, err := e.g.leftBy(e.child); err == nil && len(left) > 0 {
		exit.Background, exit.Output = left, file
	}
	return exit, nil
}

// control obeys what the client sends besides input. It never waits for the
// command, so a signal gets through no matter how much input precedes it.
func (e *execution) control(x *exchange, in *input, broken chan<- struct{}) {
	for {
		kind, payload, err := x.in.Next()
		if err == nil && kind == wire.KindStdin {
			err = in.add(payload)
		}
		if err != nil {
			// The client or its keeper has died, or talks nonsense. Closing also frees
			// goroutines that write to it.
			close(broken)
			x.stream.Close()
			return
		}
		switch kind {
		case wire.KindStdinEnd:
			in.end()
		case wire.KindSignal:
			e.obey(string(payload))
		case wire.KindResize:
			var size wire.Terminal
			if json.Unmarshal(payload, &size) == nil {
				e.stdio.resize(size)
			}
		}
	}
}

// obey passes a client's signal on. TERM and HUP ask for an end, so KILL
// follows them; an INT may be handled and survived.
func (e *execution) obey(name string) {
	switch sig := unix.SignalNum("SIG" + name); sig {
	case 0:
	case unix.SIGTERM, unix.SIGHUP:
		e.end(sig)
	case unix.SIGINT, unix.SIGQUIT:
		now := time.Now()
		e.interrupted.Store(&now)
		e.signal(sig)
	default:
		e.signal(sig)
	}
}

// signal reaches the command's process group and, on a terminal, the group
// that a shell has put into the foreground.
func (e *execution) signal(sig unix.Signal) {
	if e.ended.Load() {
		return
	}
	// Asked first: a terminal forgets its foreground with the session's leader.
	foreground := e.stdio.foreground()
	e.g.children.signal(e.child, sig)
	if foreground > 1 && foreground != e.child.pid {
		_ = unix.Kill(-foreground, sig)
	}
}

// end asks the groups to end, and kills them when the grace is over.
func (e *execution) end(signals ...unix.Signal) {
	// Before any signal: one may end the command at once, and the wait for the
	// rest of its groups checks whether they were told to end.
	e.endOnce.Do(func() {
		e.foreground = e.stdio.foreground()
		e.deadline = time.Now().Add(e.grace)
		e.killer = time.AfterFunc(e.grace, func() { e.signal(unix.SIGKILL) })
		close(e.ending)
	})
	for _, sig := range signals {
		e.signal(sig)
	}
	e.signal(unix.SIGCONT) // a stopped process cannot obey
}

// endInterrupted ends the rest of the groups of a command that an interrupt has
// just ended. A shell without job control makes its background children ignore
// INT and QUIT (POSIX, Asynchronous Lists); the human who typed Ctrl-C meant
// them too.
func (e *execution) endInterrupted() {
	at := e.interrupted.Load()
	if at == nil || time.Since(*at) > e.grace {
		return
	}
	e.end()
	for group := range e.living() {
		_ = unix.Kill(-group, unix.SIGTERM)
	}
}

// endGroups waits, when the groups were told to end, for the rest of them,
// which may outlive the command's own process; then nothing moves while the
// result is committed.
func (e *execution) endGroups() {
	const (
		pause      = 5 * time.Millisecond
		kernelTime = 20 * time.Second // for killed processes to end on a busy machine
	)
	select {
	case <-e.ending:
	default:
		return
	}
	e.killer.Stop()
	killed := false
	for {
		groups := e.living()
		now := time.Now()
		if len(groups) == 0 || now.After(e.deadline.Add(kernelTime)) {
			return
		}
		if !killed && now.After(e.deadline) {
			killed = true
			for group := range groups {
				_ = unix.Kill(-group, unix.SIGKILL)
			}
		}
		time.Sleep(pause)
	}
}

// living returns which of the groups that were told to end still have members
// after the command itself is gone. Members include those just dying, which
// still count against the limit of processes, and the dead that the guest is
// about to reap. A zombie whose parent lives is the parent's affair. The kernel
// does not reuse a number that still names a session: a process with that
// number means a new session.
func (e *execution) living() map[int]bool {
	if _, ok := readProcess(e.child.pid); ok {
		return nil
	}
	pids, err := proc.Insiders()
	if err != nil {
		return nil
	}
	groups := map[int]bool{}
	for _, pid := range pids {
		p, ok := readStat(pid)
		if !ok || p.zombie && p.Parent != os.Getpid() {
			continue
		}
		if p.session == e.child.pid && (p.Group == e.child.pid || p.Group == e.foreground) {
			groups[p.Group] = true
		}
	}
	return groups
}

// exitOf describes the status of a child that has ended.
func exitOf(c *child) wire.Exit {
	exit := wire.Exit{Code: c.status.ExitStatus(), Duration: c.took}
	if c.status.Signaled() {
		sig := c.status.Signal()
		exit.Code, exit.Signal = codeSignal+int(sig), signalName(sig)
	}
	return exit
}

func signalName(sig unix.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(sig)) // a real-time signal
}
