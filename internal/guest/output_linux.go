package guest

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Processes that a command leaves running may go on writing; their output goes
// to a file, so that the answer does not wait for them, nor they for a reader.
const (
	outputDir = "/run/litterbox"
	outputMax = 16 << 20 // bytes; the rest is read and dropped
)

// How long a command that has ended is given for output of its children: until
// nothing has come for quietTime, and at most drainTime.
const (
	quietTime = 100 * time.Millisecond
	drainTime = 500 * time.Millisecond
)

// output carries a command's output to its client, and after its end to a file.
type output struct {
	w        *wire.Writer
	sources  []*source
	activity chan struct{} // something was passed on; holds at most one

	mu      sync.Mutex // held from reading a piece to its delivery
	settled bool       // the answer goes out: nothing more to the client
	log     *os.File   // may be nil even then: drop
	room    int64      // bytes that log may still take
	whole   *whole     // nil: not asked for
}

func newOutput(w *wire.Writer, sources []*source) *output {
	return &output{w: w, sources: sources, activity: make(chan struct{}, 1)}
}

// start reads each source on a goroutine that lasts until no process holds the
// other end, which may be long after the command.
func (o *output) start() {
	var reading sync.WaitGroup
	for _, s := range o.sources {
		reading.Go(func() { o.pump(s) })
	}
	go func() {
		reading.Wait()
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.log != nil {
			o.log.Close()
			o.log = nil
		}
	}()
}

func (o *output) pump(s *source) {
	defer s.file.Close()
	defer o.wake()
	defer s.ended.Store(true)
	// With its header a full piece fits one SSH packet.
	eachPiece(s.file, make([]byte, 32<<10-64), &o.mu, func(piece []byte) {
		o.pass(s.kind, piece)
		s.passed += int64(len(piece))
		o.wake()
	})
}

// eachPiece passes on what is written to the other end of a pipe or terminal,
// until no process holds that end. Reading a piece and passing it on
// are one step under mu: its holder sees every byte either in the pipe or
// passed on.
func eachPiece(file *os.File, buf []byte, mu *sync.Mutex, pass func(piece []byte)) {
	conn, err := file.SyscallConn()
	for over := false; !over && err == nil; {
		err = conn.Read(func(fd uintptr) (ready bool) {
			mu.Lock()
			defer mu.Unlock()
			n, err := unix.Read(int(fd), buf)
			switch {
			case err == unix.EINTR:
				return true
			case err == unix.EAGAIN:
				return false
			case err != nil || n <= 0: // a terminal ends with EIO
				over = true
				return true
			}
			pass(buf[:n])
			return true
		})
	}
}

// pass delivers a piece. A client that is gone misses it.
func (o *output) pass(kind wire.Kind, p []byte) {
	if !o.settled {
		_ = o.w.Frame(kind, p)
		o.whole.write(p)
		return
	}
	if o.log == nil || o.room <= 0 {
		return
	}
	n, err := o.log.Write(p[:min(int64(len(p)), o.room)])
	o.room -= int64(n)
	if err != nil {
		o.room = 0
	}
}

func (o *output) wake() {
	select {
	case o.activity <- struct{}{}:
	default:
	}
}

// drain waits, once the command has ended, for the output that belongs to it:
// everything written before the end, however slow the client, and what follows
// shortly after. It gives up when the client is gone.
func (o *output) drain(broken <-chan struct{}) {
	o.mu.Lock()
	for _, s := range o.sources {
		s.owed = s.passed + s.unread()
	}
	o.mu.Unlock()

	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	limit := time.NewTimer(drainTime)
	defer limit.Stop()
	for late := false; ; {
		if over, idle, paid := o.progress(); over || late && paid {
			return
		} else if !idle {
			quiet.Reset(quietTime)
		}
		select {
		case <-broken:
			return
		case <-o.activity:
			quiet.Reset(quietTime)
		case <-limit.C:
			late = true
		case <-quiet.C:
			if _, idle, _ := o.progress(); idle {
				return
			}
		}
	}
}

// progress reports whether every source has ended, whether nothing waits to be
// read, and whether everything owed is delivered.
func (o *output) progress() (over, idle, paid bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	over, idle, paid = true, true, true
	for _, s := range o.sources {
		if s.ended.Load() {
			continue
		}
		over = false
		idle = idle && s.unread() == 0
		paid = paid && s.passed >= s.owed
	}
	return over, idle, paid
}

// settle ends the client's part: later output goes to the file of this
// iteration. It returns the file's name when a process can still write.
func (o *output) settle(iteration int) (file string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settled = true
	held := false
	for _, s := range o.sources {
		held = held || !s.ended.Load()
	}
	if !held {
		return ""
	}
	name := filepath.Join(outputDir, "output-"+strconv.Itoa(iteration)+".log")
	log, room, err := openLog(name)
	if err != nil {
		return ""
	}
	o.log, o.room = log, room
	return name
}

// openLog opens a file for late output. The directory is the commands' own to
// change, so anything may be there.
func openLog(name string) (log *os.File, room int64, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, 0, err
	}
	log, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, 0, err
	}
	info, err := log.Stat()
	if err != nil || !info.Mode().IsRegular() {
		log.Close()
		return nil, 0, unix.EINVAL
	}
	return log, outputMax - info.Size(), nil
}

func (s *source) unread() int64 { return unread(s.file) }

// unread is how many bytes wait in a pipe or a terminal.
func unread(file *os.File) int64 {
	n := 0
	if conn, err := file.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	return int64(n)
}
