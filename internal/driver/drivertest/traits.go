package drivertest

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// traits: what a driver says about its places.
func traits() []Check {
	return []Check{
		{
			Name: "says what its places are",
			Why:  "the keeper of a place that was made by another process goes by its lease",
			Run:  saysWhatPlacesAre,
		},
		{
			Name: "runs the system that it says",
			Why:  "the guest and every program that is brought in are chosen by it",
			Run:  runsItsSystem,
		},
		{
			Name: "hands connections over as it says",
			Why:  "a network that expects descriptors gets nothing over streams, and says nothing either",
			Run:  handsConnectionsOver,
		},
	}
}

// saysWhatPlacesAre compares a lease's traits with those declared before it. A
// place may turn out to be on this kernel, and then hands over more than streams.
func saysWhatPlacesAre(ctx context.Context, env *Env) error {
	return with(ctx, env, "traits", func(p *place) error {
		said := p.driver.Traits()
		if said.Network == sandbox.NetworkStreams && p.lease.Traits.Network == sandbox.NetworkDescriptors {
			said.Network = sandbox.NetworkDescriptors // the check of connections holds it to that
		}
		if diff := cmp.Diff(said, p.lease.Traits); diff != "" {
			return wrong("the lease says something else than the driver (-driver +lease):\n%s", diff)
		}
		if said.System == "" || said.Architecture == "" || said.Files == "" || said.Mounts == "" || said.Network == "" {
			return wrong("the driver does not say everything: %+v", said)
		}
		return nil
	})
}

func runsItsSystem(ctx context.Context, env *Env) error {
	return with(ctx, env, "system", func(p *place) error {
		said := p.driver.Traits()
		systems := map[string]string{"linux": "Linux", "darwin": "Darwin", "freebsd": "FreeBSD"}
		machines := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
		return p.printing(ctx, systems[said.System]+" "+machines[said.Architecture], "uname", "-sm")
	})
}

func handsConnectionsOver(ctx context.Context, env *Env) error {
	return with(ctx, env, "descriptors", func(p *place) error {
		said := p.driver.Traits()
		if p.lease.Traits.Network == sandbox.NetworkDescriptors {
			said.Network = sandbox.NetworkDescriptors
		}
		if said.Enforcer == "" {
			return wrong("nothing keeps the rules of the network, which is %q", said.Network)
		}
		conn, err := p.driver.Dial(ctx, p.lease)
		if err != nil {
			return wrong("cannot dial the place: %v", err)
		}
		unixConn, passes := conn.(*net.UnixConn)
		if said.Network == sandbox.NetworkDescriptors {
			if !passes {
				err = wrong("connections are handed over as descriptors, and the wire is a %T", conn)
			} else {
				err = passesAConnection(ctx, p, unixConn)
			}
		}
		err = errors.Join(err, conn.Close())
		if err == nil && said.Network == sandbox.NetworkStreams {
			err = carriesAConnection(ctx, p)
		}
		return err
	})
}

// afar is an address where only the keeper answers (RFC 5737).
const afar = "192.0.2.7:80"

// carriesAConnection does what a keeper does for a program inside: it hears of a
// connection and carries it, and both directions arrive whole and end.
func carriesAConnection(ctx context.Context, p *place) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	link, err := p.connect(ctx, p.driver)
	if err != nil {
		return err
	}
	defer link.Close()
	defer context.AfterFunc(ctx, func() { link.Close() })()
	stream, err := link.Open()
	if err != nil {
		return wrong("cannot open a stream: %v", err)
	}
	way, err := wire.OpenNetwork(ctx, stream)
	if err != nil {
		return wrong("connections go over streams, and none is announced: %v", err)
	}
	return exchanges(ctx, p, link.Close, func() error { return answersAfar(way, link) })
}

// passesAConnection does the same where the guest passes the connection itself.
func passesAConnection(ctx context.Context, p *place, conn *net.UnixConn) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if _, err := io.WriteString(conn, wire.EgressHello); err != nil {
		return wrong("cannot ask for connections as descriptors: %v", err)
	}
	way := wire.NewEgress(conn)
	defer context.AfterFunc(ctx, func() { way.Close() })()
	return exchanges(ctx, p, way.Close, func() error {
		received, err := way.Receive()
		if err != nil || received.Kind != wire.KindConnection || received.Conn == nil || received.Connection.Destination.String() != afar {
			return wrong("a program connects to %s, and what is handed over is %+v: %v", afar, received, err)
		}
		defer received.Conn.Close()
		return pong(received.Conn)
	})
}

// exchanges runs a program that connects to afar, where answer answers. end is for
// the connection that gets no answer.
func exchanges(ctx context.Context, p *place, end, answer func() error) error {
	type printed struct {
		text string
		err  error
	}
	ran := make(chan printed, 1)
	go func() {
		text, err := p.prints(ctx, connecting(afar, " && printf ping >&3 && cat <&3", "printf ping | nc %s")...)
		ran <- printed{text, err}
	}()
	err := answer()
	if err != nil {
		_ = end() // and with it the connection, for which the program waits
	}
	got := <-ran
	switch {
	case err != nil:
		return err
	case got.err != nil:
		return got.err
	case got.text != "pong":
		return wrong("a program read %q from its connection, want %q", got.text, "pong")
	}
	return nil
}

// answersAfar is the other end of the connection to afar.
func answersAfar(way *wire.Egress, link *wire.Link) error {
	received, err := way.Receive()
	if err != nil || received.Kind != wire.KindAnnounced || received.Connection.Destination.String() != afar {
		return wrong("a program connects to %s, and what is announced is %+v: %v", afar, received, err)
	}
	conduit, err := link.Carry(received.ID)
	if err != nil {
		return wrong("cannot carry a connection that was announced: %v", err)
	}
	defer conduit.Close()
	return pong(conduit)
}

// pong answers on a connection from inside.
func pong(conn interface {
	net.Conn
	CloseWrite() error
}) error {
	if err := conn.SetDeadline(time.Now().Add(settleTime)); err != nil {
		return err
	}
	word := make([]byte, len("ping"))
	if _, err := io.ReadFull(conn, word); err != nil || string(word) != "ping" {
		return wrong("a program sent \"ping\", and %q came: %v", word, err)
	}
	if _, err := io.WriteString(conn, "pong"); err != nil {
		return wrong("cannot answer a connection: %v", err)
	}
	return conn.CloseWrite()
}
