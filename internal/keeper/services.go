package keeper

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/forward"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/service"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// OpServices makes the keeper tell the guest about the services again: their
// record has changed → Empty.
const OpServices wire.Op = "keeper.services"

// tellGuest hands the guest what it cannot know: the numbers of the ports, and
// which services there are and which are wanted. A sandbox without either costs
// two checks.
func (k *keeper) tellGuest(ctx context.Context) error {
	var ports forward.Record
	havePorts, err := k.side(store.PortsFile, &ports)
	if err != nil {
		return err
	}
	var services service.Record
	haveServices, err := k.side(store.ServicesFile, &services)
	if err != nil || !havePorts && !haveServices {
		return err
	}
	link := k.wire.newest()
	stream, err := link.Open()
	if err != nil {
		return err
	}
	defer stream.Close()
	if len(services.Services) > 0 && k.beginWatch(link) {
		go k.watchServices(context.WithoutCancel(ctx), link)
	}
	return wire.Set(ctx, stream, wire.Configure{Env: ports.Env(), Services: services.Services, Wanted: services.Wanted})
}

// beginWatch reports whether services must be watched on that link, and are not
// yet.
func (k *keeper) beginWatch(link *wire.Link) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	fresh := k.watched != link
	k.watched = link
	return fresh
}

// watchServices records the changes of the services as events, until the wire
// ends. A guest that reports too many is ignored for a while.
func (k *keeper) watchServices(ctx context.Context, link *wire.Link) {
	const (
		burst = 64
		every = time.Second
	)
	stream, err := link.Open()
	if err != nil {
		return
	}
	defer stream.Close()
	left, last := burst, time.Now()
	_ = wire.WatchServices(ctx, stream, func(status service.Status) {
		if refill := int(time.Since(last) / every); refill > 0 {
			left, last = min(burst, left+refill), time.Now()
		}
		if left == 0 {
			return
		}
		left--
		data := map[string]string{"service": status.Name, "state": string(status.State)}
		if status.Problem != "" {
			data["problem"] = status.Problem
		}
		_ = k.emit(&sandbox.Event{Type: sandbox.EventService, Data: data}) // a full disk; the service runs
	})
}
