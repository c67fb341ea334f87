package keeper

import (
	"context"
	"net/netip"
	"sync/atomic"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// outbox is the way for datagrams and refusals into the sandbox. A guest that
// does not read must not hold up the sender, above all a narrower policy, which
// ends exchanges: a message that does not fit is lost, as on any network.
type outbox struct {
	link  *wire.Egress
	queue chan note
	held  atomic.Int64 // bytes of payload in the queue
}

// note is one message to the guest.
type note struct {
	kind                wire.Kind
	id                  uint64
	source, destination netip.AddrPort
	payload             []byte
}

// Bounds on what waits for a guest.
const (
	maxNotes     = 4096
	maxNoteBytes = 2 << 20
)

// newOutbox begins to send, until ctx ends or sending fails.
func newOutbox(ctx context.Context, link *wire.Egress) *outbox {
	o := &outbox{link: link, queue: make(chan note, maxNotes)}
	go o.run(ctx)
	return o
}

func (o *outbox) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-o.queue:
			o.held.Add(int64(-len(n.payload)))
			if o.send(n) != nil {
				return // a guest that is gone shows elsewhere
			}
		}
	}
}

func (o *outbox) send(n note) error {
	switch n.kind {
	case wire.KindDeclined:
		return o.link.Decline(n.id)
	case wire.KindUnreachable:
		return o.link.SendUnreachable(n.source, n.destination)
	default:
		return o.link.SendDatagram(wire.Datagram{Source: n.source, Destination: n.destination, Payload: n.payload})
	}
}

func (o *outbox) put(n note) {
	size := int64(len(n.payload))
	if o.held.Add(size) > maxNoteBytes {
		o.held.Add(-size)
		return
	}
	select {
	case o.queue <- n:
	default:
		o.held.Add(-size)
	}
}

// Reply implements egress.Back.
func (o *outbox) Reply(source, destination netip.AddrPort, payload []byte) {
	o.put(note{kind: wire.KindDatagram, source: source, destination: destination, payload: append([]byte(nil), payload...)})
}

// Refuse implements egress.Back.
func (o *outbox) Refuse(source, destination netip.AddrPort) {
	o.put(note{kind: wire.KindUnreachable, source: source, destination: destination})
}

// decline has the guest reset a connection that it has announced. If that is
// lost, the guest does so by itself after a while.
func (o *outbox) decline(id uint64) { o.put(note{kind: wire.KindDeclined, id: id}) }
