package git

import (
	"cmp"
	"maps"
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

// knownPatience is the same for a file that another git has been ended for: a
// deletion starts half a dozen of them, and each would wait for a minute.
const knownPatience = 3 * time.Second

// knownFor is how long such a file is remembered. The human may mend it meanwhile.
const knownFor = 10 * time.Minute

// looks is how often a process is looked at while it is waited for.
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

// stuck are the files that git was ended for, and when. What does not answer is
// a fact about this machine, the same for each repository and each request.
var stuck = struct {
	sync.Mutex
	files map[string]time.Time
}{files: map[string]time.Time{}}

// known are the files that git was ended for lately, and when.
func known() map[string]time.Time {
	stuck.Lock()
	defer stuck.Unlock()
	maps.DeleteFunc(stuck.files, func(_ string, at time.Time) bool { return time.Since(at) > knownFor })
	return maps.Clone(stuck.files)
}

// found remembers a file that git was ended for.
func found(file string) {
	stuck.Lock()
	defer stuck.Unlock()
	stuck.files[file] = time.Now()
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
	seen  map[wait]time.Time // when a look first found it
	over  error              // it was ended
}

// patience begins to look at a process that was just started.
func (c Command) patience(cmd *exec.Cmd) *patience {
	p := &patience{verb: c.Verb(), limit: cmp.Or(c.Tight.wait, gitPatience), process: cmd.Process, group: !c.Plain, waiting: waitsFor}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(p.pause(), p.look)
	return p
}

// pause is the time between two looks.
func (p *patience) pause() time.Duration {
	if len(known()) > 0 {
		return min(p.limit, knownPatience) / looks
	}
	return p.limit / looks
}

// least is how long a file is waited for before git is ended.
func (p *patience) least(file string) time.Duration {
	if _, ok := known()[file]; ok {
		return min(p.limit, knownPatience)
	}
	return p.limit
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
	seen, now := map[wait]time.Time{}, time.Now()
	for _, one := range p.waiting(p.process.Pid) {
		first, again := p.seen[one]
		if !again {
			first = now
		}
		seen[one] = first
		// Until it is waited for, the number is of no other process.
		if least := p.least(one.file); now.Sub(first) >= least && p.process.Signal(syscall.Signal(0)) == nil {
			found(one.file)
			p.over = tooLong(p.verb, one.file, least)
			p.signal(syscall.SIGTERM) // git removes its temporary files and locks
			p.timer.Reset(p.limit / looks)
			return
		}
	}
	p.seen = seen
	p.timer.Reset(p.pause())
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
