package drivertest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

const lentFile = "/var/lib/litterbox/lent.pem"

// lent: small files of the host, where nothing of it can be mounted.
func lent() []Check {
	return []Check{{
		Name:   "shows what it is lent",
		Why:    "programs inside trust the authorities that the host gives them, also those that come later",
		Needs:  func(c driver.Capabilities) bool { return c.Lends },
		Run:    showsTheLent,
		Absent: lendsNothing,
	}}
}

func showsTheLent(ctx context.Context, env *Env) error {
	p, err := plan(env, env.Driver(), "lent")
	if err != nil {
		return err
	}
	p.spec.Lent = []driver.Lent{{Source: filepath.Join(env.Dir, "not-read"), Target: lentFile}}
	for range 2 { // a place that is started again is lent its files again
		if err := p.acquire(ctx); err != nil {
			return err
		}
		if err := errors.Join(p.showsTheLent(ctx), p.end(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) showsTheLent(ctx context.Context) error {
	lender, can := p.driver.(driver.Lender)
	if !can {
		return wrong("it says that it lends, and cannot")
	}
	if err := p.wants(ctx, lentFile, ""); err != nil {
		return err
	}
	for _, content := range []string{strings.Repeat("a long line\n", 16_000), "short\n", ""} {
		if err := lender.Lend(ctx, p.lease, lentFile, []byte(content)); err != nil {
			return wrong("cannot lend a file of %d bytes: %v", len(content), err)
		}
		if err := p.wants(ctx, lentFile, content); err != nil {
			return err
		}
	}
	if err := p.write(ctx, lentFile, "replaced\n"); err == nil {
		return wrong("what is lent can be written inside")
	}
	if err := lender.Lend(ctx, p.lease, "/etc/passwd", []byte("root::0:0::/:/bin/sh\n")); fault.KindOf(err) != fault.NotFound {
		return wrong("a file that was not agreed on is lent with %v, want %s", err, fault.NotFound)
	}
	return nil
}

func lendsNothing(ctx context.Context, env *Env) error {
	return with(ctx, env, "unlent", func(p *place) error {
		lender, can := p.driver.(driver.Lender)
		if !can {
			return nil
		}
		return refused("Lend", lender.Lend(ctx, p.lease, lentFile, nil))
	})
}
