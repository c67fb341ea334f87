package moby

import (
	"context"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Engine implements container.Engine.
type Engine struct {
	// Program finds the program that runs in Linux machines.
	Program func(architecture string) (Program, error)
	Env     []string // of ssh, which may be the way to an engine

	mu      sync.Mutex
	clients map[string]*client.Client // by address
}

// Program is one on its way to a machine.
type Program struct {
	ID   string // SHA-256 of its content, in hexadecimal digits
	Size int64  // bytes
	Open func() (io.ReadCloser, error)
}

// at is the client of the engine at an address. It connects to nothing yet.
func (e *Engine) at(order container.Order) (*session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.clients[order.Address]
	if c == nil {
		made, err := client.New(append(reaching(order.Address, e.Env), client.WithUserAgent("litterbox"))...)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "cannot use the engine's address %q", order.Address).WithHint("docker version")
		}
		if e.clients == nil {
			e.clients = map[string]*client.Client{}
		}
		e.clients[order.Address], c = made, made
	}
	return &session{engine: e, client: c, order: order}, nil
}

// session is one order on its way.
type session struct {
	engine *Engine
	client *client.Client
	order  container.Order
}

// patience bounds how long an engine may take for anything but an image. A busy
// one takes seconds to start a container.
const patience = 2 * time.Minute

// Do implements container.Engine.
func (e *Engine) Do(ctx context.Context, order container.Order, progress func(container.Progress)) (container.Reply, error) {
	s, err := e.at(order)
	if err != nil {
		return container.Reply{}, err
	}
	if order.Op != container.OpImage {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	var reply container.Reply
	switch order.Op {
	case container.OpConnect:
		reply.Found, err = s.connect(ctx)
	case container.OpImage:
		reply.Image, err = s.image(ctx, progress)
	case container.OpEnsure:
		err = s.ensure(ctx, true)
	case container.OpList:
		reply.Machines, err = s.list(ctx)
	case container.OpRemove:
		err = s.remove(ctx)
	case container.OpStop:
		err = s.stop(ctx)
	default:
		err = fault.Wrap("", driver.ErrUnsupported, "the engine's program does not know the order %q", order.Op)
	}
	return reply, err
}

// Dial implements container.Engine.
func (e *Engine) Dial(ctx context.Context, order container.Order) (io.ReadWriteCloser, error) {
	s, err := e.at(order)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for attempt := 1; ; attempt++ {
		if err := s.ensure(ctx, false); err != nil {
			return nil, err
		}
		conn, err := s.dial(ctx)
		if err == nil || attempt == attempts || ctx.Err() != nil {
			return conn, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond << attempt):
		}
	}
}

// attempts is how often to start an outpost that does not begin: for a moment
// engines report a container that has just ended as running, and another release
// of litterbox may be bringing its program.
const attempts = 3

// connect asks the engine what it is.
func (s *session) connect(ctx context.Context) (*container.Found, error) {
	if _, err := s.client.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true, ForceNegotiate: true}); err != nil {
		return nil, s.sealed(err, "cannot use "+s.order.Kind.Title())
	}
	v, err := s.client.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return nil, s.sealed(err, "cannot use "+s.order.Kind.Title())
	}
	if v.Os != "linux" {
		return nil, fault.New(fault.Unsupported, "cannot use %s at %s: it runs containers of %s, not of Linux", s.order.Kind.Title(), s.order.Address, v.Os)
	}
	if v.Arch != "" && v.Arch != runtime.GOARCH {
		return nil, fault.New(fault.Unsupported, "cannot use %s at %s: it runs containers of %s, and this litterbox is of %s", s.order.Kind.Title(), s.order.Address, v.Arch, runtime.GOARCH)
	}
	name := v.Platform.Name
	for _, part := range v.Components {
		if part.Name == "Engine" || strings.HasPrefix(part.Name, "Podman") {
			name = part.Name
		}
	}
	return &container.Found{Name: strings.TrimSpace(name + " " + v.Version), Architecture: v.Arch}, nil
}
