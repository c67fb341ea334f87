package keeper

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

const (
	// mostConnections is what one sandbox may have open at once.
	mostConnections = 4096
	// perConnection is what one connection needs: two sockets, and a pipe
	// while the kernel moves its bytes.
	perConnection = 4
	// reserve is for everything else: commands of clients, the wire, files,
	// questions to the host's resolver.
	reserve = 64
	// mostExchanges is what one sandbox may have at once over UDP, with a
	// socket for each.
	mostExchanges = 512
)

// connections is how many connections the keeper's descriptors are enough for:
// the flood of a sandbox must not keep the human's commands out.
func connections() int {
	limit := descriptors()
	if limit >= reserve+mostExchanges+mostConnections*perConnection {
		return mostConnections
	}
	return max(1, (limit-reserve-exchanges())/perConnection)
}

// exchanges is how many exchanges over UDP there is room for beside them.
func exchanges() int {
	return max(1, min(mostExchanges, descriptors()/16))
}

// descriptors is how many this process may have.
func descriptors() int {
	const usual = 1024
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return usual
	}
	return int(min(limit.Cur, 1<<20))
}

// carry lets the proxy carry a connection where there is room for one more, and
// resets it at once where there is none.
func (n *network) carry(ctx context.Context, received wire.Received) {
	why := "the sandbox has as many connections open as this machine lets it have"
	if received.Conn == nil {
		why = "the keeper has no descriptor left for it"
	} else {
		select {
		case n.room <- struct{}{}:
			go func() {
				defer func() { <-n.room }()
				n.proxy.Handle(ctx, received.Conn, received.Connection.Destination, received.Connection.Process)
			}()
			return
		default:
			_ = received.Conn.SetLinger(0) // a reset, not an end; fails only on a dead socket
			_ = received.Conn.Close()
		}
	}
	to := received.Connection.Destination
	refused := egress.Observation{Addr: to.Addr().Unmap(), Port: to.Port(), Protocol: egress.TCP, Process: received.Connection.Process,
		Verdict: egress.Denied, Why: why, Count: 1}
	if host, ok := n.resolver.Names.Host(refused.Addr); ok {
		refused.Host = host
	}
	n.observe(refused)
}
