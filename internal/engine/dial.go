package engine

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// dial opens a request stream to the sandbox's keeper.
func (p *place) dial(ctx context.Context) (*net.UnixConn, error) {
	conn, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	welcome, err := welcomed(conn)
	p.paused = welcome == keeper.PausedWelcome
	p.unreachable = welcome == keeper.UnreachableWelcome
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// connect connects to the keeper's socket.
func (p *place) connect(ctx context.Context) (*net.UnixConn, error) {
	var conn net.Conn
	err := process.ShortPath(p.dir, func(short string) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(short, keeper.Socket))
		return err
	})
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// welcomed waits for the keeper's first byte, which is 0 with an error. A dying keeper
// still has connections in its queue; only one that lives, with a guest that
// answers, says so.
func welcomed(conn *net.UnixConn) (byte, error) {
	said := make([]byte, 1)
	err := conn.SetReadDeadline(time.Now().Add(welcomePatience))
	if err == nil {
		_, err = conn.Read(said)
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil || !slices.Contains([]byte{keeper.Welcome, keeper.PausedWelcome, keeper.UnreachableWelcome}, said[0]) {
		return 0, fault.Wrap("", driver.ErrUnreachable, "cannot reach the keeper")
	}
	return said[0], nil
}

// welcomePatience is how long a keeper may take for its first byte. It answers at
// once unless the machine is overloaded.
const welcomePatience = 5 * time.Second

// unwelcomed is a connection to a keeper that is written to before the keeper's welcome
// has come: the request is for the keeper alone.
type unwelcomed struct {
	*net.UnixConn
	done bool // it has come
}

// Read skips the welcome.
func (u *unwelcomed) Read(p []byte) (int, error) {
	if !u.done {
		if _, err := welcomed(u.UnixConn); err != nil {
			return 0, err
		}
		u.done = true
	}
	return u.UnixConn.Read(p)
}
