package guest

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"golang.org/x/sys/unix"
)

// children is the one owner of waiting. Every process that ends below PID 1
// comes here: the guest's own children get their status, orphans are just
// reaped. (Beside it, os/exec would wait too, and one of the two would get the
// other's answer.)
type children struct {
	// mu is held across a fork and its registration, and across wait4 and
	// its delivery, so that no child can end unseen in between. It also makes
	// signalling safe: a registered pid has not been reaped, so it is ours.
	mu      sync.Mutex
	running map[int]*child
}

// child is one process the guest started; every one leads its own session.
type child struct {
	pid     int
	started time.Time
	ticks   uint64          // start in clock ticks since boot, as /proc/<pid>/stat has it
	done    chan struct{}   // closed when it has ended; then the rest is set
	status  unix.WaitStatus //
	took    time.Duration   // from start to end
	mark    uint64          // as the command had it
}

func newChildren() *children { return &children{running: map[int]*child{}} }

// add runs fork and registers the child it made.
func (c *children) add(fork func() (int, error)) (*child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	started, ticks := time.Now(), ticksSinceBoot()
	pid, err := fork()
	if err != nil {
		return nil, err
	}
	made := &child{pid: pid, started: started, ticks: ticks, done: make(chan struct{})}
	c.running[pid] = made
	return made, nil
}

// reapForever collects processes as they end.
func (c *children) reapForever() {
	ended := make(chan os.Signal, 1) // one is enough: reap takes all that there are
	signal.Notify(ended, unix.SIGCHLD)
	for {
		c.reap()
		<-ended
	}
}

// reap collects all that have ended and reports whether no child is left at
// all: as PID 1, whether the guest is alone.
func (c *children) reap() (alone bool) {
	for {
		c.mu.Lock()
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == nil && pid > 0 {
			if ended, ours := c.running[pid]; ours {
				delete(c.running, pid)
				ended.status, ended.took = status, time.Since(ended.started)
				close(ended.done)
			}
		}
		c.mu.Unlock()
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err == unix.ECHILD
		case pid == 0:
			return false
		}
	}
}

// signal sends a signal to the process group of a child that has not ended.
func (c *children) signal(to *child, sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[to.pid] == to {
		_ = unix.Kill(-to.pid, sig) // ESRCH means that it is over already
	}
}

// signalOne sends a signal to a child alone, unless it has ended.
func (c *children) signalOne(to *child, sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[to.pid] == to {
		_ = unix.Kill(to.pid, sig) // as in signal
	}
}

// over reports whether the child has ended.
func (c *child) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// signalAll sends a signal to every process but the guest.
func (c *children) signalAll(sig unix.Signal) {
	if proc.IsInit() {
		_ = unix.Kill(-1, sig)
		return
	}
	// Elsewhere -1 would reach every process of this user on the machine.
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid := range c.running {
		_ = unix.Kill(-pid, sig)
	}
	// And processes that have left those groups. None is reaped meanwhile, so each
	// number is still a descendant's.
	for _, pid := range proc.Descendants(os.Getpid()) {
		_ = unix.Kill(pid, sig)
	}
}

// sessions returns the sessions of the children that run.
func (c *children) sessions() map[int]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	led := make(map[int]bool, len(c.running))
	for pid := range c.running {
		led[pid] = true
	}
	return led
}

// ticksSinceBoot is the present as proc_pid_stat(5) field 22 counts it: USER_HZ
// is 100 on every architecture litterbox runs on.
func ticksSinceBoot() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return uint64(now.Sec)*100 + uint64(now.Nsec)/1e7
}
