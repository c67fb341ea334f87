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

// saysWhatPlacesAre compares a lease's traits with those declared before it.
func saysWhatPlacesAre(ctx context.Context, env *Env) error {
	return with(ctx, env, "traits", func(p *place) error {
		said := p.driver.Traits()
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
		if said.Enforcer == "" {
			return wrong("nothing keeps the rules of the network, which is %q", said.Network)
		}
		conn, err := p.driver.Dial(ctx, p.lease)
		if err != nil {
			return wrong("cannot dial the place: %v", err)
		}
		_, passes := conn.(*net.UnixConn)
		if said.Network == sandbox.NetworkDescriptors && !passes {
			err = wrong("connections are handed over as descriptors, and the wire is a %T", conn)
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
	type printed struct {
		text string
		err  error
	}
	ran := make(chan printed, 1)
	go func() {
		text, err := p.prints(ctx, connecting(afar, " && printf ping >&3 && cat <&3", "printf ping | nc %s")...)
		ran <- printed{text, err}
	}()
	err = answersAfar(way, link)
	if err != nil {
		link.Close() // and with it the connection, for which the program waits
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
	if err := conduit.SetDeadline(time.Now().Add(settleTime)); err != nil {
		return err
	}
	word := make([]byte, len("ping"))
	if _, err := io.ReadFull(conduit, word); err != nil || string(word) != "ping" {
		return wrong("a program sent \"ping\", and %q came: %v", word, err)
	}
	if _, err := io.WriteString(conduit, "pong"); err != nil {
		return wrong("cannot answer over a stream: %v", err)
	}
	return conduit.CloseWrite()
}
