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

// connections is how many connections the keeper's descriptors suffice for: a
// flood from a sandbox must not lock the human's commands out.
func connections() int {
	limit := descriptors()
	if limit >= reserve+mostExchanges+mostConnections*perConnection {
		return mostConnections
	}
	return max(1, (limit-reserve-exchanges())/perConnection)
}

// exchanges is how many UDP exchanges there is room for besides them.
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

// tooMany is the reason for refusing a connection that there is no room for.
const tooMany = "the sandbox has as many connections open as this machine lets it have"

// carry lets the proxy carry a connection if there is room for one more, and
// otherwise resets it at once.
func (n *network) carry(ctx context.Context, received wire.Received) {
	why := tooMany
	if received.Conn == nil {
		why = "the keeper has no descriptor left for it"
	} else {
		select {
		case n.room <- struct{}{}:
			go func() {
				defer func() { <-n.room }()
				n.rest.Begin()
				defer n.rest.End()
				n.proxy.Handle(ctx, received.Conn, received.Connection.Destination, received.Connection.Process)
			}()
			return
		default:
			_ = received.Conn.SetLinger(0) // a reset, not an end; fails only on a dead socket
			_ = received.Conn.Close()
		}
	}
	n.refuse(received.Connection, why)
}

// refuse records a connection on which nothing was decided.
func (n *network) refuse(c wire.Connection, why string) {
	refused := egress.Observation{Addr: c.Destination.Addr().Unmap(), Port: c.Destination.Port(), Protocol: egress.TCP, Process: c.Process,
		Verdict: egress.Denied, Why: why, Count: 1}
	if host, ok := n.resolver.Names.Host(refused.Addr); ok {
		refused.Host = host
	}
	n.observe(refused)
}
