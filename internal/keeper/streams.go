package keeper

import (
	"context"
	"errors"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// serveNetwork serves the sandbox's network in its place's own way, until the
// connection ends.
func (k *keeper) serveNetwork(ctx context.Context) error {
	if k.traits().Network == sandbox.NetworkStreams {
		return k.net.serveStreams(ctx, k.openWire)
	}
	return k.net.serve(ctx, k.driver, k.driverLease())
}

// serveStreams serves a guest that announces its connections. It uses a wire of
// its own, so that transfers by programs inside do not hold up commands.
func (n *network) serveStreams(ctx context.Context, open func(context.Context) (*wire.Link, error)) error {
	brief, cancel := context.WithTimeout(ctx, handshakePatience)
	defer cancel()
	link, err := open(brief)
	if err != nil {
		return err
	}
	defer link.Close()
	defer context.AfterFunc(ctx, func() { link.Close() })()
	stream, err := link.Open()
	if err != nil {
		return err
	}
	way, err := wire.OpenNetwork(ctx, stream)
	if err != nil {
		return errors.Join(err, stream.Close())
	}
	return n.receive(ctx, way, link)
}

// carryAnnounced opens the conduit of a connection that the guest has announced,
// and lets the proxy carry it. A guest that never takes the conduit occupies one
// of its own slots, and nothing more.
func (n *network) carryAnnounced(ctx context.Context, link *wire.Link, received wire.Received, out *outbox) {
	decline := func(why string) {
		n.refuse(received.Connection, why)
		out.decline(received.ID)
	}
	if received.ID == 0 {
		n.refuse(received.Connection, tooMany) // and reset by the guest already
		return
	}
	select {
	case n.room <- struct{}{}:
	default:
		decline(tooMany)
		return
	}
	go func() {
		defer func() { <-n.room }()
		conduit, err := link.Carry(received.ID)
		switch {
		case err == nil:
			n.proxy.Handle(ctx, conduit, received.Connection.Destination, received.Connection.Process)
		case fault.KindOf(err) == fault.NotFound, ctx.Err() != nil: // the program is gone, or everything is
		default:
			decline(err.Error())
		}
	}()
}

// byConduit has the guest connect, and carries the bytes on a link of its own.
func (d *dialer) byConduit(port uint16, gone <-chan struct{}) (*wire.Conduit, error) {
	link, err := d.openLink()
	if err != nil {
		return nil, err
	}
	return link.Dial(port, gone)
}

func (d *dialer) openLink() (*wire.Link, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conduits != nil {
		return d.conduits, nil
	}
	brief, cancel := context.WithTimeout(d.ctx, handshakePatience)
	defer cancel()
	link, err := d.k.openWire(brief)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(d.ctx, func() { link.Close() })
	go func() {
		_ = link.Wait() // the next connection shows whether there is another one
		stop()
		d.mu.Lock()
		d.conduits = nil
		d.mu.Unlock()
	}()
	d.conduits = link
	return link, nil
}
