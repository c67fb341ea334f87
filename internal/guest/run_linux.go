package guest

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// maxConnections bounds what unknown processes can make the guest remember:
// there is one keeper, and for a moment the one that follows it.
const maxConnections = 64

// guest is the state of the one guest in this process.
type guest struct {
	Config
	started  time.Time
	children *children
	spawner  *spawner

	stopOnce sync.Once
	stop     chan struct{} // closed when the guest shall end
}

// Run serves until a shutdown is asked for, and then returns nil, or until
// the listener fails. As PID 1 its return should end the process, which ends
// everything else inside.
func Run(config Config) error {
	// Children run under the same uid: without this they could trace the
	// guest and read its key from /proc/1/mem (ptrace(2), PR_SET_DUMPABLE(2const)).
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot hide the guest from its children")
	}
	// Where the guest is not PID 1, orphans still come to it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot adopt orphans")
	}
	outlive()
	g := &guest{Config: config, started: time.Now(), children: newChildren(), stop: make(chan struct{})}
	go g.children.reapForever()

	spawner, listener, err := newSpawner(g.children, config.Notify)
	if err != nil {
		return err
	}
	g.spawner = spawner
	// Before the first command can see what a crash left half done.
	recoverRenames(config.Workspace)
	dropPartialWrites(config.Workspace)
	if config.Notify != nil {
		r, err := newRenamer(listener, config.Workspace)
		if err != nil {
			return err
		}
		go r.serve()
	}
	if config.Ready != nil {
		_, err := config.Ready.Write([]byte{1})
		if err := errors.Join(err, config.Ready.Close()); err != nil {
			return fault.Wrap(fault.Internal, err, "cannot tell that the guest serves")
		}
	}
	return g.accept()
}

// accept serves every connection until the guest stops.
func (g *guest) accept() error {
	var serving sync.WaitGroup
	places := make(chan struct{}, maxConnections)
	go func() {
		<-g.stop
		g.Listener.Close()
	}()
	for {
		conn, err := g.Listener.Accept()
		switch {
		case err == nil:
			places <- struct{}{}
			serving.Go(func() {
				defer func() { <-places }()
				// What goes wrong on a connection is its keeper's to report.
				_ = wire.Serve(conn, g.PrivateKey, g.HostKey, g.handle)
			})
			continue
		case g.stopping():
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.ENOMEM):
			time.Sleep(50 * time.Millisecond) // lets descriptors come free instead of spinning
			continue
		case errors.Is(err, net.ErrClosed):
			return fault.New(fault.Unavailable, "cannot serve: the listener is closed")
		}
		return fault.Wrap(fault.Unavailable, err, "cannot accept a connection")
	}
}

func (g *guest) end() { g.stopOnce.Do(func() { close(g.stop) }) }

func (g *guest) stopping() bool {
	select {
	case <-g.stop:
		return true
	default:
		return false
	}
}

// isInit tells whether this process is PID 1 of its namespace, and so may
// signal "everybody" without reaching beyond the sandbox.
func isInit() bool { return os.Getpid() == 1 }
