package guest

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// agents are the programs that connect to the socket of the human's ssh-agent, where
// nothing of the host is mounted: the guest makes the socket, and the keeper takes one
// connection after the other.
type agents struct {
	mu       sync.Mutex
	path     string
	listener *net.UnixListener
	conns    chan net.Conn
}

// agentPatience is how long a program waits for a keeper that has none free, or is
// away. Afterwards it sees an agent that has gone.
const agentPatience = 5 * time.Second

// listen makes the socket, and anew where it was removed.
func (a *agents) listen(path string) (<-chan net.Conn, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := os.Lstat(path); err == nil && a.listener != nil && a.path == path {
		return a.conns, nil
	}
	if a.listener != nil {
		a.listener.Close()
		a.listener = nil
	}
	// Every program inside is of one user: nothing here is kept from another.
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	var listener *net.UnixListener
	if err == nil {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	}
	if err != nil {
		return nil, wrap(err, "cannot make the socket of the ssh-agent at %q", path)
	}
	listener.SetUnlinkOnClose(false) // another one may be there by then
	a.path, a.listener, a.conns = path, listener, make(chan net.Conn)
	go accepting(listener, a.conns)
	return a.conns, nil
}

func accepting(listener *net.UnixListener, conns chan<- net.Conn) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: some come free
			continue
		}
		late := time.NewTimer(agentPatience)
		select {
		case conns <- conn:
		case <-late.C:
			conn.Close()
		}
		late.Stop()
	}
}

// sshAgent gives the keeper the next program that connects.
func (g *guest) sshAgent(x *exchange) (wire.Empty, error) {
	path, err := g.path(x.request.Path)
	if err != nil {
		return wire.Empty{}, err
	}
	conns, err := g.agents.listen(path)
	if err != nil {
		return wire.Empty{}, err
	}
	answers := make(chan []byte) // closed when the keeper has gone
	over := make(chan struct{})
	defer close(over)
	go func() {
		defer close(answers)
		for {
			kind, payload, err := x.in.Next()
			if err != nil {
				return
			}
			if kind != wire.KindStdin {
				continue
			}
			select {
			case answers <- append([]byte(nil), payload...):
			case <-over:
				return
			}
		}
	}()
	g.rest.End() // it waits for as long as the sandbox runs
	var conn net.Conn
	select {
	case conn = <-conns:
	case <-answers: // a keeper has nothing to answer yet: it has gone
	}
	g.rest.Begin()
	if conn == nil {
		return wire.Empty{}, fault.New(fault.Canceled, "cannot wait for a program: the keeper has gone")
	}
	defer conn.Close()
	if err := x.out.Frame(wire.KindStarted, nil); err != nil {
		return wire.Empty{}, err
	}
	go func() {
		for answer := range answers {
			if _, err := conn.Write(answer); err != nil {
				break
			}
		}
		conn.Close() // ends the reading below
	}()
	buffer := make([]byte, 16<<10)
	for {
		n, err := conn.Read(buffer)
		if n > 0 && x.out.Frame(wire.KindStdout, buffer[:n]) != nil {
			return wire.Empty{}, nil
		}
		if err != nil {
			return wire.Empty{}, nil //nolint:nilerr // the program has ended its connection
		}
	}
}
