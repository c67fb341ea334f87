package drivertest

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// concurrency: many places and many wires.
func concurrency() []Check {
	return []Check{
		{
			Name: "holds many places apart",
			Why:  "ten creates may race, and no sandbox sees another's files",
			Run:  holdsManyPlacesApart,
		},
		{
			Name: "carries many wires",
			Why:  "a new keeper dials while the old one's wire still hangs",
			Run:  carriesManyWires,
		},
	}
}

func holdsManyPlacesApart(ctx context.Context, env *Env) error {
	const many = 6
	d := env.Driver() // one value, as in a keeper or a server of many
	places := make([]*place, many)
	var acquiring errgroup.Group
	for i := range places {
		acquiring.Go(func() error {
			var err error
			places[i], err = acquire(ctx, env, d, fmt.Sprintf("many-%d", i))
			return err
		})
	}
	err := acquiring.Wait()
	if err == nil {
		err = tellApart(ctx, places)
	}
	for _, p := range places {
		if p != nil {
			err = errors.Join(err, p.end(ctx))
		}
	}
	return err
}

func tellApart(ctx context.Context, places []*place) error {
	path := inside("whose.txt")
	var using errgroup.Group
	for _, p := range places {
		using.Go(func() error { return p.write(ctx, path, p.spec.Name) })
	}
	if err := using.Wait(); err != nil {
		return wrong("cannot write in several places at once: %v", err)
	}
	for _, p := range places {
		if err := p.wants(ctx, path, p.spec.Name); err != nil {
			return err
		}
	}
	return nil
}

func carriesManyWires(ctx context.Context, env *Env) error {
	return with(ctx, env, "wires", func(p *place) error {
		old, err := p.connect(ctx, p.driver)
		if err != nil {
			return err
		}
		defer old.Close()
		fresh, err := p.connect(ctx, p.driver)
		if err != nil {
			return wrong("beside a wire that is open: %v", err)
		}
		defer fresh.Close()
		var using errgroup.Group
		for i := range 20 {
			link := old
			if i%2 == 0 {
				link = fresh
			}
			using.Go(func() error {
				text := fmt.Sprintf("text %d", i)
				got, err := execute(ctx, link, command{argv: []string{"cat"}, stdin: text})
				if err == nil && got.stdout != text {
					err = wrong("one of several commands at once printed %q, want %q", got.stdout, text)
				}
				return err
			})
		}
		return using.Wait()
	})
}
