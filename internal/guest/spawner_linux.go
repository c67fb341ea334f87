package guest

import (
	"runtime"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/overlay"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
)

// spawner makes every child of the guest on one thread, so that a seccomp
// filter on that thread is inherited by all of them and by nothing else.
type spawner struct {
	orders chan order
}

// command is what execve(2) needs, and the new process's surroundings.
type command struct {
	path  string // absolute, or relative to dir
	argv  []string
	dir   string
	env   []string
	files []uintptr // become descriptors 0, 1, 2
	tty   bool      // descriptor 0 becomes the controlling terminal
	mark  uint64    // of the run of a service; 0 for none
}

type order struct {
	command
	answer chan<- spawned
}

type spawned struct {
	child *child
	err   error
}

// newSpawner starts the thread. notify, when not nil, runs on it first.
func newSpawner(c *children, scores victims, notify func() (int, error)) (*spawner, int, error) {
	s := &spawner{orders: make(chan order)}
	type start struct {
		listener int
		err      error
	}
	started := make(chan start)
	go func() {
		// Never unlocked. The runtime makes no new thread from a locked one
		// (it keeps a clean template thread), so the filter stays here.
		runtime.LockOSThread()
		// On this thread, no matter how the program was linked.
		first := start{listener: -1, err: overlay.StandApart()}
		if notify != nil && first.err == nil {
			first.listener, first.err = notify()
		}
		started <- first
		if first.err != nil {
			return // the thread ends with its goroutine
		}
		for o := range s.orders {
			scores.mark()
			child, err := c.add(func() (int, error) {
				return marked(o.mark, func() (int, error) { return fork(o.command) })
			})
			if child != nil {
				child.mark = o.mark
			}
			scores.unmark()
			o.answer <- spawned{child, err}
		}
	}()
	first := <-started
	if first.err != nil {
		return nil, -1, fault.Wrap(fault.Unavailable, first.err, "cannot prepare the thread that starts commands")
	}
	return s, first.listener, nil
}

// start makes a child. Errors are those of execve(2) and fork(2).
func (s *spawner) start(c command) (*child, error) {
	answer := make(chan spawned, 1)
	s.orders <- order{c, answer}
	got := <-answer
	return got.child, got.err
}

func fork(c command) (int, error) {
	// Always a session of its own: its number then names the group to signal, and
	// the processes the command leaves running.
	return syscall.ForkExec(c.path, c.argv, &syscall.ProcAttr{
		Dir:   c.dir,
		Env:   c.env,
		Files: c.files,
		// As PID 1 the guest takes every process along when it ends; elsewhere this
		// thread, which lives as long, takes at least its own children.
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: c.tty, Pdeathsig: deathSignal()},
	})
}

func deathSignal() syscall.Signal {
	if proc.IsInit() {
		return 0
	}
	return syscall.SIGKILL
}
