package boot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// Server answers one link until it ends.
type Server interface {
	Serve(conn io.ReadWriteCloser) error
}

// ports answers on every port of the machine.
type ports struct {
	server Server
	runs   func() bool // a place runs here
	links  atomic.Int64
	used   atomic.Int64 // when a link ended last, ns
	moved  *sync.Cond   // a host came or went
	turn   int          // how often; guarded by moved.L
	end    chan struct{}
	once   sync.Once
}

// Answer answers on the ports with server until the machine should end, and
// returns the exit code that tells the first process. runs reports whether there
// is a place, which keeps the machine from ending by itself.
func Answer(server Server, runs func() bool) int {
	p := &ports{server: server, runs: runs, moved: sync.NewCond(&sync.Mutex{}), end: make(chan struct{})}
	p.used.Store(time.Now().UnixNano())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGIO)
	go func() {
		// The tick is for lost signals: one is lost if a port is closed at that
		// moment.
		tick := time.NewTicker(time.Second)
		for {
			select {
			case <-signals:
			case <-tick.C:
			}
			p.moved.L.Lock()
			p.turn++
			p.moved.L.Unlock()
			p.moved.Broadcast()
		}
	}()
	names, err := filepath.Glob("/sys/class/virtio-ports/vport*/name")
	if err != nil || len(names) == 0 {
		fmt.Println("litterbox: the machine has no ports:", err)
		return 1
	}
	for _, file := range names {
		name, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(name), PortPrefix) {
			go p.serve("/dev/" + filepath.Base(filepath.Dir(file)))
		}
	}
	if idle := idleAfter(); idle > 0 {
		go p.watch(idle)
	}
	<-p.end
	return ended
}

// serve answers on one port forever, one link after the other. The port is opened
// again for each: closing it drops unread data.
func (p *ports) serve(device string) {
	for {
		f, err := os.OpenFile(device, os.O_RDWR|unix.O_NONBLOCK, 0)
		if errors.Is(err, unix.EBUSY) { // a reader of the previous link is releasing it
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err != nil {
			fmt.Printf("litterbox: cannot open %s: %v\n", device, err)
			time.Sleep(time.Second)
			continue
		}
		if err := p.one(f); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
			fmt.Printf("litterbox: %s: %v\n", device, err)
		}
		_ = f.Close() // a link that ended has closed it
	}
}

func (p *ports) one(f *os.File) error {
	if err := p.wait(f); err != nil {
		return err
	}
	host, err := outpost.AcceptPort(f)
	if err != nil {
		return err
	}
	// Counted before the clock is set, or else a machine that came up from an old
	// memory looks unused for long.
	p.links.Add(1)
	defer func() {
		p.used.Store(time.Now().UnixNano())
		p.links.Add(-1)
	}()
	stir(host.Number)
	if skew := time.Since(host.Now); skew > 2*time.Second || skew < -2*time.Second {
		tv := unix.NsecToTimeval(host.Now.UnixNano())
		_ = unix.Settimeofday(&tv) // a wrong clock is no reason not to answer
	}
	if host.Ended {
		p.once.Do(func() { close(p.end) })
		select {} // the host reads until the machine is off
	}
	return p.server.Serve(link{host.R, f})
}

// stir gives the kernel's random numbers another course (random(4), RNDRESEEDCRNG):
// that of a machine which came up from a kept or copied memory would be the same
// each time.
func stir(number []byte) {
	f, err := os.OpenFile("/dev/urandom", os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(number)
		err = errors.Join(err, unix.IoctlSetInt(int(f.Fd()), unix.RNDRESEEDCRNG, 0), f.Close())
	}
	if err != nil {
		fmt.Println("litterbox: random numbers may repeat:", err)
	}
}

// wait returns when a host is at the other end. The kernel sends a signal for
// that: a read without a host returns at once.
func (p *ports) wait(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if _, failed = unix.FcntlInt(fd, unix.F_SETOWN, os.Getpid()); failed != nil {
			return
		}
		_, failed = unix.FcntlInt(fd, unix.F_SETFL, unix.O_NONBLOCK|unix.O_ASYNC)
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	for {
		p.moved.L.Lock()
		turn := p.turn
		p.moved.L.Unlock()
		var there bool
		err := raw.Control(func(fd uintptr) {
			set := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			_, failed = unix.Poll(set, 0)
			there = set[0].Revents&unix.POLLHUP == 0
		})
		if err != nil {
			return err
		}
		if there && failed == nil {
			return nil
		}
		p.moved.L.Lock()
		for p.turn == turn {
			p.moved.Wait()
		}
		p.moved.L.Unlock()
	}
}

// watch ends a machine that nothing uses.
func (p *ports) watch(idle time.Duration) {
	for {
		time.Sleep(idle / 4)
		quiet := time.Since(time.Unix(0, p.used.Load())) > idle && p.links.Load() == 0
		if quiet && !p.runs() && p.links.Load() == 0 {
			p.once.Do(func() { close(p.end) })
			return
		}
	}
}

// idleAfter is the time that the host has set for that.
func idleAfter() time.Duration {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return 0
	}
	for _, word := range strings.Fields(string(line)) {
		if text, has := strings.CutPrefix(word, IdleOption); has {
			if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
				return time.Duration(seconds) * time.Second
			}
		}
	}
	return 0
}

// link is the stream of a host over a port.
type link struct {
	r io.Reader
	f *os.File
}

func (l link) Read(p []byte) (int, error)  { return l.r.Read(p) }
func (l link) Write(p []byte) (int, error) { return l.f.Write(p) }
func (l link) Close() error                { return l.f.Close() }
