package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// Neighbour is a Machine that may run on this machine's kernel. Meeting returns
// where a directory is that both have, here and there; empty where there is none.
// Only this side needs to write in it.
type Neighbour interface {
	Meeting() (here, there string)
}

// meeting is a socket at which one connection from a machine is awaited. The
// machine connects, so nothing that it could replace is opened here, and no
// descriptor of its choice is taken.
type meeting struct {
	listener    *net.UnixListener
	here, there string // the socket's path
}

// meet opens a socket in the directory of a machine. It fails where there is none.
func (c *client) meet() (*meeting, error) {
	neighbour, can := c.machine.(Neighbour)
	if !can {
		return nil, driver.ErrUnsupported
	}
	here, there := neighbour.Meeting()
	if here == "" {
		return nil, driver.ErrUnsupported
	}
	number := make([]byte, 16)
	_, _ = rand.Read(number) // never fails, crypto/rand
	name := hex.EncodeToString(number)
	m := &meeting{here: filepath.Join(here, name), there: filepath.Join(there, name)}
	err := process.ShortPath(here, func(dir string) (err error) {
		m.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	m.listener.SetUnlinkOnClose(false)              // the short path is gone by then
	if err := os.Chmod(m.here, 0o666); err != nil { // the machine's user is another one
		m.end()
		return nil, err
	}
	return m, nil
}

// meetPatience is for a connection that was made already.
const meetPatience = 10 * time.Second

// accept returns the connection of which the machine says that it was made.
func (m *meeting) accept(ctx context.Context) (net.Conn, error) {
	defer context.AfterFunc(ctx, func() { _ = m.listener.Close() })()
	if err := m.listener.SetDeadline(time.Now().Add(meetPatience)); err != nil {
		return nil, err
	}
	return m.listener.Accept()
}

func (m *meeting) end() {
	_ = m.listener.Close() // connections that were not accepted end with it
	_ = os.Remove(m.here)  // or the machine's next start removes it
}

// shares reports whether a machine runs on this kernel, so that its guests can pass
// descriptors: it comes to a socket of this machine, and names the same boot.
func (c *client) shares(ctx context.Context) bool {
	self, err := process.Identify(os.Getpid())
	if err != nil || self.Boot == "" {
		return false
	}
	m, err := c.meet()
	if err != nil {
		return false
	}
	defer m.end()
	answer, err := c.ask(ctx, outpost.Request{Op: outpost.OpMeet, Meet: m.there})
	if err != nil || !answer.Met || answer.Boot != self.Boot {
		return false
	}
	conn, err := m.accept(ctx)
	return err == nil && conn.Close() == nil
}

// dialMeeting asks for a place's wire, which comes to a socket here where it can,
// and otherwise is a stream.
func (c *client) dialMeeting(ctx context.Context, q outpost.Request) (net.Conn, error) {
	m, err := c.meet()
	if err != nil {
		return c.dialStream(ctx, q)
	}
	defer m.end()
	q.Meet = m.there
	stream, answer, err := c.open(ctx, q)
	if err != nil {
		return nil, err
	}
	if !answer.Met {
		return stream, nil
	}
	_ = stream.Close() // it has said everything
	conn, err := m.accept(ctx)
	if err != nil {
		return nil, c.unreachable(errors.Join(errors.New("its guest did not come"), err))
	}
	return conn, nil
}

// dialStream asks for a place's wire as a stream of the outpost's.
func (c *client) dialStream(ctx context.Context, q outpost.Request) (net.Conn, error) {
	stream, _, err := c.open(ctx, q)
	if err != nil {
		return nil, err // not stream: a nil pointer in an interface is not nil
	}
	return stream, nil
}
