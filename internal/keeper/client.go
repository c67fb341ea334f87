package keeper

import (
	"context"
	"errors"
	"io"
	"net"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// Welcome is the byte that a keeper sends to a client before anything else:
// the guest has just answered. A client that is cut off before it knows that
// nothing of its request was carried out, and may start the sandbox again.
const Welcome = '+'

// client serves one connection: one request.
func (k *keeper) client(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	if k.released() {
		return // the sandbox is ending
	}
	// A paused place cannot be asked for a stream; the client may want only the
	// keeper.
	var stream wire.Stream
	said := k.listen(conn)
	welcome := byte(Welcome)
	var unreachable error
	why := k.why()
	if why != "" && errors.Is(k.driver.Attach(ctx, k.driverLease()), driver.ErrMachineLost) {
		_ = k.resume(ctx) // it was killed while paused, and dies when it resumes
		return
	}
	switch why {
	case "":
		var err error
		switch stream, err = k.reach(ctx, said); {
		case errors.Is(err, driver.ErrUnreachable):
			welcome, unreachable = UnreachableWelcome, ErrUnreachable(k.order.Spec.Name, k.wire.cutSince(), nil)
		case err != nil:
			return
		case stream != nil:
			defer stream.Close()
		}
	case sandbox.PausedByUser:
		welcome = PausedWelcome
	}
	if _, err := conn.Write([]byte{welcome}); err != nil {
		return
	}
	kind, payload, request, err := said.next()
	if err != nil {
		return // a client that died, or one that is not ours
	}
	if !understands(request) {
		_ = wire.Fail(conn, ErrOtherVersion(k.order.Spec.Name)) // the client may be gone
		return
	}
	if isOwn(request) {
		k.own(ctx, conn, request)
		return
	}
	if unreachable != nil {
		_ = wire.Fail(conn, unreachable) // the client may be gone
		return
	}
	if request.Op == wire.OpHead { // every commit begins with it
		k.committing()
	}
	if err := k.begin(ctx); err != nil {
		_ = wire.Fail(conn, err) // the client may be gone
		return
	}
	defer k.end()
	if stream == nil {
		if stream, err = k.wire.await(ctx); err != nil {
			_ = wire.Fail(conn, ErrUnreachable(k.order.Spec.Name, k.wire.cutSince(), nil)) // likewise
			return
		}
		defer stream.Close()
	}
	if wire.WriteFrame(stream, kind, k.bounded(request, payload)) != nil {
		return
	}
	go func() {
		// The client's end, in order or by kill -9, ends the stream; the
		// guest then ends what the request had started.
		_, _ = io.Copy(stream, conn)
		if request.Op == wire.OpForward || request.Op == wire.OpFiles {
			_ = stream.CloseWrite() // half of a connection may go on; a broken one shows below
			return
		}
		stream.Close()
	}()
	answer, over := k.echo.tap(request, stream)
	_, _ = io.Copy(conn, answer) // either end closing is an ordinary end
	over()
}

// own answers an operation of the keeper itself.
func (k *keeper) own(ctx context.Context, conn net.Conn, request wire.Request) {
	var err error
	switch request.Op {
	case OpStop:
		defer k.once.Do(func() { close(k.ended) })
		err = k.stop(context.WithoutCancel(ctx), request.Grace)
	case OpRenew:
		k.mu.Lock()
		state := k.lease.State
		k.mu.Unlock()
		err = k.renew(state)
	case OpServices:
		err = k.tellGuest(ctx)
	case OpPause:
		err = k.pause(ctx, sandbox.PauseReason(request.Reason))
	case OpSnapshot:
		taken, err := k.snapshot(context.WithoutCancel(ctx), request.Reason)
		if err != nil {
			_ = wire.Fail(conn, err) // the client may be gone
			return
		}
		_ = wire.WriteJSON(conn, wire.KindResult, taken)
		return
	case OpResume:
		err = k.resume(ctx)
	case OpLimits:
		err = k.changeLimits(ctx)
	case OpCheck:
		k.supervisor.check(ctx)
		_ = wire.WriteJSON(conn, wire.KindResult, reachedList{k.supervisor.recent()})
		return
	case OpDeploy:
		err = k.deploy(ctx)
	case OpSignatures:
		_ = wire.WriteJSON(conn, wire.KindResult, k.signatures())
		return
	case OpSign, OpNoSign:
		err = k.sign(request.Reason, request.Op == OpSign)
	case OpPolicy:
		err = k.net.reload()
	case OpPack:
		k.pack(context.WithoutCancel(ctx))
		return
	case OpLend:
		err = k.net.borrow(conn)
	case OpLogins:
		if err = k.net.admitLogins(conn); err == nil {
			return
		}
	case OpNetwork:
		err = k.net.save()
	case OpFollow:
		k.net.follow(conn)
		return
	case OpEcho:
		k.echo.serve(conn, request.Since)
		return
	case OpAsk:
		k.net.askers.serve(conn)
		return
	default:
		err = ErrOtherVersion(k.order.Spec.Name) // which knows more operations
	}
	if err != nil {
		_ = wire.Fail(conn, err)
		return
	}
	_ = wire.WriteJSON(conn, wire.KindResult, wire.Empty{})
}
