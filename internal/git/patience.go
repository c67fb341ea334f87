package git

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// gitPatience is how long git may wait for one file. What it reads can lead to
// files that never come: a pipe in a store, or a disk of a host that is gone. Git
// opens whatever has an object's name, and waits.
const gitPatience = time.Minute

// looks is how often a process is looked at in that time.
const looks = 4

// wait is one thread of git that sleeps in a system call on a file. Two looks that
// find the same saw no processor time used and no byte moved in between.
type wait struct {
	pid, thread int
	call        string // the system call, with its arguments
	time        uint64 // of processors, in ticks
	bytes       string // read and written
	file        string
}

// patience looks at a process now and then, and ends it when it waits for one and
// the same file. A process that works, or waits for its input, for a reader or for
// another program, is left alone, however long that takes. A process that has ended
// by the first look was not looked at at all.
type patience struct {
	verb    string
	limit   time.Duration
	process *os.Process
	group   bool                 // it has a process group of its own
	waiting func(pid int) []wait // what a process and its children wait for

	mu    sync.Mutex
	timer *time.Timer
	seen  map[wait]int // how many looks found it
	over  error        // it was ended
}

// patience begins to look at a process that was just started.
func (c Command) patience(cmd *exec.Cmd) *patience {
	p := &patience{verb: c.Verb(), limit: cmp.Or(c.Tight.wait, gitPatience), process: cmd.Process, group: !c.Plain, waiting: waitsFor}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.limit/looks, p.look)
	return p
}

func (p *patience) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		return // it has ended
	}
	if p.over != nil {
		p.signal(syscall.SIGKILL)
		return
	}
	seen := map[wait]int{}
	for _, one := range p.waiting(p.process.Pid) {
		seen[one] = p.seen[one] + 1
		// Until it is waited for, the number is of no other process.
		if seen[one] > looks && p.process.Signal(syscall.Signal(0)) == nil {
			p.over = tooLong(p.verb, one.file, p.limit)
			p.signal(syscall.SIGTERM) // git removes its temporary files and locks
			break
		}
	}
	p.seen = seen
	p.timer.Reset(p.limit / looks)
}

// signal reaches all that the process has started, where that can be told.
func (p *patience) signal(signal syscall.Signal) {
	if p.group {
		_ = syscall.Kill(-p.process.Pid, signal) // it may just have ended
		return
	}
	_ = p.process.Signal(signal)
}

// end stops looking at a process that has ended, and says whether this ended it.
func (p *patience) end(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.timer = nil
	if err != nil && p.over != nil {
		return p.over
	}
	return err
}

func tooLong(verb, file string, limit time.Duration) error {
	return fault.New(fault.Timeout, "cannot finish git %s: it has waited %v for the file %q", verb, limit, Printable(file)).
		WithHint("ls -l %s   (remove the file if it is a pipe; if this command hangs as well, the disk or host with that directory does not answer)", ShellWord(file))
}

// ShellWord writes a path as one word of a shell, for a hint.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(Printable(s), "'", `'\''`) + "'"
}
