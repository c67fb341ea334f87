package drivertest

import (
	"context"
	"errors"
	"net"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// traits: what a driver says of its places.
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

// saysWhatPlacesAre compares a lease with what was said before there was one.
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
		return errors.Join(err, conn.Close())
	})
}
