package keeper

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// faraway is a driver whose places have their files in another machine.
type faraway struct{ driver.Driver }

func (faraway) Traits() sandbox.Traits                     { return sandbox.Traits{Files: sandbox.FilesCarried} }
func (faraway) Files(driver.Lease) driver.Files            { return nil }
func (faraway) Forget(context.Context, driver.Lease) error { return nil }

// What a client wants of the keeper alone is answered although the guest does not
// answer; anything else waits for the guest.
func TestTheKeepersOwnWaitsForNoGuest(t *testing.T) {
	for op, want := range map[wire.Op]error{OpNetwork: nil, OpPolicy: nil, wire.OpHead: driver.ErrUnreachable} {
		synctest.Test(t, func(t *testing.T) {
			k := &keeper{driver: faraway{}, wire: newTether()} // without a wire
			client, conn := net.Pipe()
			opening := k.listen(conn)
			go func() { _ = wire.WriteJSON(client, wire.KindRequest, wire.Request{Version: wire.Version, Op: op}) }()
			stream, err := k.reach(t.Context(), opening)
			if stream != nil || !errors.Is(err, want) {
				t.Errorf("%s: %v, %v", op, stream, err)
			}
			if _, _, request, err := opening.next(); err != nil || request.Op != op {
				t.Errorf("%s: then the request is %+v, %v", op, request, err)
			}
			_ = client.Close()
		})
	}
}
