package git

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Bounds are what one git process may take. Objects made by an agent can
// demand any amount: a tree of ten levels of ten entries stands for 10^10
// paths, a delta of a few bytes for gigabytes.
//
// Zero fields set no bound.
type Bounds struct {
	Memory int64         // bytes its own; packs that it maps do not count
	time   time.Duration // of processors
	output int64         // bytes collected from it
	wait   time.Duration // for one and the same file; 0 is gitPatience, for any git
}

// Git holds a base object, a delta and its result at once, each at most
// maxDelta bytes, and some hundred bytes for each path.
const (
	GitMemory = 2 << 30
	gitTime   = 10 * time.Minute
	gitOutput = 1 << 30
)

// modest are settings under which git needs little memory for any objects:
// larger files are streamed, never compared with others and never deltas.
var modest = [...]string{
	"core.bigFileThreshold=64m", "pack.windowMemory=256m", "pack.deltaCacheSize=64m", "pack.threads=2",
}

// bounds returns those of the process; ok is false where it has none, because it reads
// the human's own repository, or is the user's own git and may run hooks and editors.
func (c Command) bounds() (b Bounds, ok bool) {
	b = Bounds{Memory: GitMemory, time: gitTime, output: gitOutput}
	if c.Tight != (Bounds{}) {
		b = c.Tight
	}
	return b, !c.Trusted && (!c.Plain || c.Tight != (Bounds{}))
}

// Start starts the process under its bounds. The caller waits for its end with wait,
// instead of cmd.Wait.
func (c Command) Start(cmd *exec.Cmd) (wait func() error, err error) {
	if err := c.start(cmd); err != nil {
		return nil, err
	}
	p := c.patience(cmd)
	return func() error { return p.end(cmd.Wait()) }, nil
}

func (c Command) start(cmd *exec.Cmd) error {
	start := cmd.Start
	if !c.Plain {
		start = func() error { return awayFromTerminal(cmd.Start) }
	}
	b, ok := c.bounds()
	if !ok {
		return start()
	}
	if c.mayEnd() && !c.Plain {
		endWithCaller(cmd.SysProcAttr)
	}
	if !c.Plain { // it has a process group of its own, which ends as a whole
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
	if err := start(); err != nil {
		return err
	}
	// Right after the start instead of before: a limit set while memory grows
	// works as well, and needs no process in between.
	if err := limitProcess(cmd.Process.Pid, b); err != nil {
		_ = cmd.Cancel() // it may have ended by itself
		_ = cmd.Wait()   // killed
		return fault.Wrap(fault.Unavailable, err, "cannot limit git")
	}
	return nil
}

// mayEnd reports whether the process can end at any moment: it changes only files of
// its own, or refs, of which a transaction that is cut off is made again by the command
// that finds it. Refs that a git writes after its caller's end would be nobody's.
func (c Command) mayEnd() bool {
	switch c.Verb() {
	case "cat-file", "diff-tree", "index-pack", "ls-tree", "merge-base", "merge-tree", "pack-objects", "rev-list", "update-ref":
		return true
	}
	return false
}

// collected is output that is kept in memory, up to a limit. The buffer is not
// embedded: its ReadFrom would go around Write.
type collected struct {
	buffer bytes.Buffer
	limit  int64
	over   error // it was too much
}

func (c *collected) Write(b []byte) (int, error) {
	if c.limit > 0 && int64(c.buffer.Len()+len(b)) > c.limit {
		c.over = fault.New(fault.Denied, "git prints more than %d bytes", c.limit)
		return 0, c.over
	}
	return c.buffer.Write(b)
}

// Messages is the beginning of git's standard error.
type Messages struct{ text []byte }

func (m *Messages) Write(b []byte) (int, error) {
	m.text = append(m.text, b[:min(len(b), maxMessages-len(m.text))]...)
	return len(b), nil
}

func (m *Messages) String() string { return string(m.text) }

const maxMessages = 64 << 10 // bytes

// exceeded reports which bound ended the process; nil if none did.
func (c Command) exceeded(exit *exec.ExitError, stderr string) error {
	b, ok := c.bounds()
	status, known := exit.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return nil
	case known && status.Signaled() && status.Signal() == syscall.SIGXCPU:
		return fault.New(fault.Denied, "git %s needs more than %v of a processor", c.Verb(), b.time)
	// Words from git's wrapper.c, a shell, and a thread without a stack.
	case known && status.Signaled() && status.Signal() == signalMemory ||
		strings.Contains(stderr, "ut of memory") || strings.Contains(stderr, "ut of space") || strings.Contains(stderr, "unable to create thread"):
		return fault.New(fault.Denied, "git %s needs more than %d bytes of memory", c.Verb(), b.Memory)
	}
	return nil
}
