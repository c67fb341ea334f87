package fake

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// network announces connections of the built-in bash, as package guest/egress
// does those of programs.
type network struct {
	mu      sync.Mutex
	keeper  *wire.Egress // connections are announced to it
	serial  uint64
	waiting map[uint64]*connection // by id
}

// connection is one that bash has made.
type connection struct {
	carried chan *wire.Conduit // nil when the link has ended
	over    chan struct{}      // closed when bash is done with it
}

// serve announces on a stream until that ends.
func (n *network) serve(stream wire.Stream) {
	keeper, err := wire.ServeNetwork(stream, func(keeper *wire.Egress) {
		n.mu.Lock()
		n.keeper = keeper
		n.mu.Unlock()
	})
	if err != nil {
		return
	}
	for {
		if _, err := keeper.Receive(); err != nil {
			return // the contract declines nothing
		}
	}
}

// connect announces a connection and gives it to use once it is carried.
func (n *network) connect(to netip.AddrPort, use func(*wire.Conduit) error) error {
	n.mu.Lock()
	if n.keeper == nil {
		n.mu.Unlock()
		return errors.New("connection refused")
	}
	n.serial++
	id, keeper, one := n.serial, n.keeper, &connection{carried: make(chan *wire.Conduit, 1), over: make(chan struct{})}
	n.waiting[id] = one
	n.mu.Unlock()
	defer close(one.over)
	if err := keeper.Announce(id, wire.Connection{Destination: to, Process: "bash"}); err != nil {
		return err
	}
	if c := <-one.carried; c != nil {
		return use(c)
	}
	return errors.New("connection reset")
}

// announced is the handler of that name in [wire.Handlers].
func (n *network) announced(id uint64) (func(*wire.Conduit), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.waiting[id]
	if one == nil {
		return nil, errors.New("there is no such connection")
	}
	delete(n.waiting, id)
	return func(c *wire.Conduit) {
		one.carried <- c
		<-one.over
	}, nil
}

// converse does what the contract's script does: it sends a word and prints the
// answer.
func (p *place) converse(script string, stdout io.Writer) (int, error) {
	_, rest, _ := strings.Cut(script, "/dev/tcp/")
	host, rest, _ := strings.Cut(rest, "/")
	port, rest, _ := strings.Cut(rest, " && printf ")
	word, _, _ := strings.Cut(rest, " ")
	to, err := netip.ParseAddrPort(host + ":" + port)
	if err != nil {
		return 1, err
	}
	err = p.net.connect(to, func(c *wire.Conduit) error {
		if !p.driver.has(LosesStreams) {
			if _, err := io.WriteString(c, word); err != nil {
				return err
			}
		}
		_, err := io.Copy(stdout, c)
		return err
	})
	return codeOf(err), err
}
