package guest

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"github.com/litterbox-sandbox/litterbox/internal/guest/overlay"
	"github.com/litterbox-sandbox/litterbox/internal/rest"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// maxConnections bounds what unknown processes can make the guest remember:
// there is one keeper, and for a moment the one that follows it.
const maxConnections = 64

// guest is the state of the one guest in this process.
type guest struct {
	egress *egress.Intake // nil without a network
	Config
	started  time.Time
	children *children
	spawner  *spawner
	services *supervisor
	rest     *rest.Rest

	executions executions
	agents     agents

	prepared chan struct{} // closed when commands can run; then the fields above are set
	stopOnce sync.Once
	stop     chan struct{} // closed when the guest should end
}

// Run serves until a shutdown is asked for, and then returns nil, or until
// the listener fails. As PID 1 its return should end the process, which ends
// everything else inside.
func Run(config Config) error {
	scores := openVictims()
	// Children run under the same uid: without this they could trace the
	// guest and read its key from /proc/1/mem (ptrace(2), PR_SET_DUMPABLE(2const)).
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot hide the guest from its children")
	}
	if err := overlay.StandApart(); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot keep the guest out of its children's reach")
	}
	// Where the guest is not PID 1, orphans still come to it.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot adopt orphans")
	}
	keepDescriptors()
	outlive()
	const collectAt = 100 // percent, as usual: a short run wants no collection
	g := &guest{Config: config, started: time.Now(), children: newChildren(),
		prepared: make(chan struct{}), stop: make(chan struct{}), rest: rest.New(collectAt)}
	g.services = newSupervisor(g)
	go g.children.reapForever()
	// The handshake with the keeper, which may be waiting already, needs none of
	// the setup below; its first request does (handle).
	ended := make(chan error, 1)
	go func() { ended <- g.accept() }()
	if err := g.setUp(scores); err != nil {
		return err
	}
	if config.Ready != nil {
		_, err := config.Ready.Write([]byte{1})
		if err := errors.Join(err, config.Ready.Close()); err != nil {
			return fault.Wrap(fault.Internal, err, "cannot tell that the guest serves")
		}
	}
	return <-ended
}

// setUp makes the guest ready to run commands.
func (g *guest) setUp(scores victims) error {
	config := g.Config
	spawner, listener, err := newSpawner(g.children, scores, config.Notify)
	if err != nil {
		return err
	}
	g.spawner = spawner
	// Before the first command can see the half-done work of a crash.
	overlay.RecoverRenames(config.Workspace)
	dropPartialWrites(config.Workspace)
	if config.Notify != nil && config.Shared != nil {
		go (&overlay.Attributes{Watched: overlay.Watched{Listener: listener}, Writable: config.Shared.Writable}).Serve()
	} else if config.Notify != nil {
		r, err := overlay.NewRenamer(listener, config.Workspace, config.Home)
		if err != nil {
			return err
		}
		if config.Install {
			r.WithoutSetID()
		}
		go r.Serve()
	}
	if config.Network {
		if g.egress, err = egress.Start(egress.NewDiag(config.SocketDiag)); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot serve the sandbox's connections")
		}
		if config.Datagrams != nil {
			if err := g.egress.CarryDatagrams(*config.Datagrams); err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot serve the sandbox's datagrams")
			}
		}
	}
	go keepThreads()
	close(g.prepared)
	return nil
}

// keepDescriptors keeps inherited descriptors from the guest's children: Go
// marks only the descriptors that it opens itself.
func keepDescriptors() {
	const first = 3
	if unix.CloseRange(first, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil { // Linux 5.11
		return
	}
	for fd := first; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
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
				if g.passesDescriptors(&conn) {
					return
				}
				// The keeper reports what goes wrong on its connection.
				_ = wire.ServeAll(conn, g.PrivateKey, g.HostKey, wire.Handlers{Stream: g.handle, Announced: g.announced, Port: g.port})
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

// passesDescriptors serves *at when it begins with the hello of a connection
// that passes descriptors instead of SSH's, and reports whether it did. A
// connection that only brings another one is replaced by that.
func (g *guest) passesDescriptors(at *net.Conn) bool {
	unixConn, ok := (*at).(*net.UnixConn)
	if !ok || g.Streams {
		return false
	}
	first, err := peek(unixConn, len(wire.EgressHello))
	if err == nil && first == wire.PassHello {
		if unixConn, err = wire.TakePassed(unixConn); err != nil {
			return true
		}
		*at = unixConn
		first, err = peek(unixConn, len(wire.EgressHello))
	}
	if err != nil || first != wire.EgressHello && first != wire.ForwardHello || first == wire.EgressHello && !g.Network {
		return false
	}
	if _, err := io.ReadFull(unixConn, make([]byte, len(first))); err != nil {
		return true
	}
	<-g.prepared
	if first == wire.EgressHello {
		link := wire.NewEgress(unixConn)
		g.egress.Take(link)
		g.egress.Serve(link)
	} else {
		g.serveDials(unixConn)
	}
	return true
}

// peek reads the first n bytes and leaves them where they are.
func peek(conn *net.UnixConn, n int) (string, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return "", err
	}
	buffer := make([]byte, n)
	var got int
	var peekErr error
	err = raw.Read(func(fd uintptr) bool {
		got, _, peekErr = unix.Recvfrom(int(fd), buffer, unix.MSG_PEEK)
		return !errors.Is(peekErr, unix.EAGAIN) && (got == 0 || got == n || peekErr != nil || buffer[0] != wire.EgressHello[0])
	})
	return string(buffer[:max(got, 0)]), errors.Join(err, peekErr)
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
