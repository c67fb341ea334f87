package keeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/forward"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// reservations is the table of the numbers of all sandboxes, on disk.
type reservations struct {
	Version int                   `json:"version"`
	Ports   map[int]forward.Owner `json:"ports"`
}

// openPorts listens for the sandbox's forwarded ports, as its record has them,
// and records their numbers. A sandbox without ports costs one check.
func (k *keeper) openPorts(ctx context.Context, attach bool) error {
	id := k.order.Spec.SandboxID
	var record forward.Record
	found, err := k.side(store.PortsFile, &record)
	if err != nil || !found {
		return err
	}
	reserve := func(ctx context.Context, change func(map[int]forward.Owner) error) error {
		var table reservations
		return k.store.ShareTable(ctx, store.PortsFile, &table, func() error {
			if table.Version > sandbox.RecordVersion {
				return fault.New(fault.Unsupported, "cannot reserve ports: the table is version %d and this program knows %d", table.Version, sandbox.RecordVersion).
					WithHint("install a newer litterbox")
			}
			table.Version = sandbox.RecordVersion
			if table.Ports == nil {
				table.Ports = map[int]forward.Owner{}
			}
			for number, owner := range table.Ports {
				if _, err := os.Stat(k.store.SandboxDir(owner.Sandbox)); errors.Is(err, os.ErrNotExist) {
					delete(table.Ports, number) // its sandbox was deleted
				}
			}
			return change(table.Ports)
		})
	}
	if k.ports, k.notes, err = forward.Open(ctx, reserve, id, &record, attach); err != nil {
		return err
	}
	record.Version = sandbox.RecordVersion
	return k.store.SaveRecord(id, store.PortsFile, record)
}

// side reads a further record of the sandbox. A damaged one counts as missing:
// the next start writes it again from the configuration.
func (k *keeper) side(file string, into any) (found bool, err error) {
	found, err = k.store.Record(k.order.Spec.SandboxID, file, into)
	if errors.Is(err, seal.ErrDamaged) {
		fmt.Fprintln(os.Stderr, "keeper: going on without it:", err)
		return false, nil
	}
	return found, err
}

// forwardPorts serves the ports until they are closed.
func (k *keeper) forwardPorts(ctx context.Context) {
	d := &dialer{k: k, ctx: ctx}
	if k.traits().Network != sandbox.NetworkDescriptors {
		k.ports.Serve(k.waking(d.carried), wire.MaxStreams/2)
		return
	}
	k.ports.Serve(k.waking(d.byDescriptor), max(1, connections()/4))
}

// dialer makes connections inside for forwarded ports.
type dialer struct {
	k   *keeper
	ctx context.Context

	mu   sync.Mutex
	link *wire.Dialer // nil until the first connection, and after its end

	conduits *wire.Link // likewise, where no descriptors are passed
}

// byDescriptor has the guest connect, and takes the socket from it: the kernel
// then moves the bytes between two sockets of this process.
func (d *dialer) byDescriptor(port uint16, gone <-chan struct{}) (forward.Conn, error) {
	link, err := d.open()
	if err != nil {
		return nil, err
	}
	conn, err := link.Dial(port, gone)
	if err != nil {
		return nil, err // not conn: a nil pointer in an interface is not nil
	}
	return conn, nil
}

func (d *dialer) open() (*wire.Dialer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.link != nil {
		return d.link, nil
	}
	conn, err := d.k.driver.Dial(d.ctx, d.k.driverLease())
	if err != nil {
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fault.Wrap("", driver.ErrUnsupported, "cannot pass descriptors over this driver's wire"), conn.Close())
	}
	if _, err := unixConn.Write([]byte(wire.ForwardHello)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	link := wire.NewDialer(unixConn)
	stop := context.AfterFunc(d.ctx, func() { link.Close() })
	go func() {
		err := link.Serve()
		stop()
		link.Close()
		d.mu.Lock()
		d.link = nil
		d.mu.Unlock()
		if d.ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "keeper: forwarding ended:", err)
		}
	}()
	d.link = link
	return link, nil
}

// carried has the guest connect, and carries the bytes on a wire of its own.
func (d *dialer) carried(port uint16, gone <-chan struct{}) (forward.Conn, error) {
	conduit, err := d.byConduit(port, gone)
	if fault.KindOf(err) == fault.Unsupported {
		return d.overWire(port, gone)
	}
	if err != nil {
		return nil, err // not conduit: a nil pointer in an interface is not nil
	}
	return conduit, nil
}

// overWire carries the bytes on a stream of the wire, the way that older guests know.
func (d *dialer) overWire(port uint16, gone <-chan struct{}) (forward.Conn, error) {
	stream, err := d.k.wire.open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-gone:
			cancel()
		case <-stopped:
		}
	}()
	if err := wire.Forward(ctx, stream, port); err != nil {
		return nil, errors.Join(err, stream.Close())
	}
	return streamed{stream}, nil
}

// streamed is a connection inside that a stream of the wire carries.
type streamed struct{ wire.Stream }

// Reset breaks it off: the server inside sees a reset.
func (c streamed) Reset() error { return wire.Reset(c.Stream) }
