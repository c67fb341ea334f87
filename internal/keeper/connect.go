package keeper

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// connect opens the wire and the keeper's own socket, and records the lease.
func (k *keeper) connect(ctx context.Context) (net.Listener, error) {
	link, err := k.openWire(ctx)
	if err != nil {
		return nil, err
	}
	k.wire.tie(link)
	if err := k.tellGuest(ctx); err != nil {
		return nil, errors.Join(err, link.Close())
	}
	dir := k.order.Spec.StateDir
	if err := k.openSSHAgent(ctx); err != nil {
		return nil, errors.Join(err, link.Close())
	}
	if err := k.openInstalls(ctx); err != nil {
		return nil, errors.Join(err, link.Close())
	}
	if err := k.openCosts(); err != nil {
		return nil, errors.Join(err, link.Close())
	}
	if k.net, err = openNetwork(dir, k.store, k.emit, k.costs, k.rest, k.lend); err != nil {
		return nil, errors.Join(err, link.Close())
	}
	path := filepath.Join(dir, Socket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot replace the keeper's socket")
	}
	var listener *net.UnixListener
	err = process.ShortPath(dir, func(short string) error {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, Socket), Net: "unix"})
		return err
	})
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.Unavailable, err, "cannot open the keeper's socket"), link.Close())
	}
	listener.SetUnlinkOnClose(false) // its short path is gone by then
	return listener, k.renew(sandbox.LeaseActive)
}

// linked is the outcome of a handshake.
type linked struct {
	link *wire.Link
	err  error
}

// connectEarly begins the handshake while the guest still starts: our first
// words wait for it, and our part of the work is done meanwhile.
func (k *keeper) connectEarly(ctx context.Context) func(net.Conn) {
	return func(conn net.Conn) {
		k.early = make(chan linked, 1)
		go func() {
			link, err := wire.Connect(ctx, conn, k.order.HostPrivate, k.order.GuestPublic)
			k.early <- linked{link, err}
		}()
	}
}

func (k *keeper) openWire(ctx context.Context) (*wire.Link, error) {
	if k.early != nil {
		early := <-k.early
		k.early = nil
		if early.err == nil {
			return early.link, nil
		}
	}
	conn, err := k.driver.Dial(ctx, k.driverLease())
	if err != nil {
		return nil, err
	}
	link, err := wire.Connect(ctx, conn, k.order.HostPrivate, k.order.GuestPublic)
	if fault.KindOf(err) == fault.Unsupported {
		return nil, ErrOtherVersion(k.order.Spec.Name)
	}
	if err != nil {
		return nil, errors.Join(fault.Wrap(fault.Unavailable, err, "cannot talk to the guest"), conn.Close())
	}
	return link, nil
}

func (k *keeper) driverLease() driver.Lease {
	return driver.Lease{ID: k.lease.ID, SandboxID: k.lease.SandboxID, StateDir: k.order.Spec.StateDir, Handle: k.lease.Handle, Traits: k.lease.Traits}
}

// traits are those of the place; before there is one, and where an older keeper
// has recorded none, those that its driver promises.
func (k *keeper) traits() sandbox.Traits {
	if k.lease != nil && k.lease.Traits.System != "" {
		return k.lease.Traits
	}
	return k.driver.Traits()
}
