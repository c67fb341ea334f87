package engine

import (
	"context"
	"net"

	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// ahead is a stream to a sandbox's keeper that is opened while a command runs, for
// the first question of its commit: opening it takes a round trip to a place in
// another machine. A nil one is none.
type ahead struct {
	cancel context.CancelFunc
	opened chan *net.UnixConn // one, which is nil where none could be opened
}

// openAhead begins to open one. The caller closes it.
func (p *place) openAhead(ctx context.Context) *ahead {
	if !p.far() {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	a := &ahead{cancel: cancel, opened: make(chan *net.UnixConn, 1)}
	go func() {
		defer close(a.opened)
		conn, err := p.connect(ctx)
		if err != nil {
			return
		}
		if welcome, _ := welcomed(conn); welcome != keeper.Welcome {
			_ = conn.Close() // nothing was asked
			return
		}
		a.opened <- conn
	}()
	return a
}

// take returns the stream, once.
func (a *ahead) take() *net.UnixConn {
	if a == nil {
		return nil
	}
	return <-a.opened
}

func (a *ahead) close() {
	if a == nil {
		return
	}
	a.cancel()
	if conn := a.take(); conn != nil {
		_ = conn.Close() // nothing was asked
	}
}

// head asks where the agent's own history stands, over the stream that was opened
// ahead if that one still goes through.
func (a *ahead) head(ctx context.Context, p *place) (wire.Head, error) {
	if stream := a.take(); stream != nil {
		head, err := wire.FindHead(ctx, stream)
		_ = stream.Close() // it has said everything
		if err == nil {
			return head, nil
		}
	}
	stream, err := p.dial(ctx)
	if err != nil {
		return wire.Head{}, err
	}
	defer stream.Close()
	return wire.FindHead(ctx, stream)
}
