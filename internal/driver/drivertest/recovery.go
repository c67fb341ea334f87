package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// recovery: what crashes and cancellations leave.
func recovery() []Check {
	return []Check{
		{
			Name: "recovers twice",
			Why:  "two commands may find the same wreck, and a healthy place must survive a look at it",
			Run:  recoversTwice,
		},
		{
			Name: "notices a killed guest",
			Why:  "a lease that looks alive without a guest would hang every command after it",
			Run:  noticesAKilledGuest,
		},
		{
			Name: "keeps files over a crash",
			Why:  "kill -9 of any process loses no file",
			Run:  keepsFilesOverACrash,
		},
		{
			Name: "cancels without a trace",
			Why:  "Ctrl-C during create leaves nothing behind",
			Run:  cancelsWithoutATrace,
		},
	}
}

func recoversTwice(ctx context.Context, env *Env) error {
	return with(ctx, env, "recover", func(p *place) error {
		if err := p.recover(ctx); err != nil {
			return err
		}
		if _, err := p.prints(ctx, "true"); err != nil {
			return wrong("Recover of a healthy place ends it: %v", err)
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		if err := p.recover(ctx); err != nil {
			return err
		}
		if err := p.acquire(ctx); err != nil {
			return wrong("after Recover: %v", err)
		}
		return nil
	})
}

func (p *place) recover(ctx context.Context) error {
	for range 2 {
		if _, err := p.driver.Recover(ctx, p.lease); err != nil {
			return wrong("cannot recover: %v", err)
		}
	}
	return nil
}

func noticesAKilledGuest(ctx context.Context, env *Env) error {
	return with(ctx, env, "killed", func(p *place) error {
		if err := env.Kill(ctx, p.lease); err != nil {
			return err
		}
		if err := p.driver.Attach(ctx, p.lease); !errors.Is(err, driver.ErrMachineLost) {
			return wrong("Attach answers %v after the guest was killed, want ErrMachineLost", err)
		}
		return nil
	})
}

func keepsFilesOverACrash(ctx context.Context, env *Env) error {
	return with(ctx, env, "crash", func(p *place) error {
		files := map[string]string{workspacePath + "/work.txt": "an hour of work\n", homePath + "/.history": "what was typed\n"}
		for path, content := range files {
			if err := p.write(ctx, path, content); err != nil {
				return wrong("cannot write %s inside: %v", path, err)
			}
		}
		p.held = false
		if err := env.Kill(ctx, p.lease); err != nil {
			return err
		}
		if _, err := p.driver.Recover(ctx, p.lease); err != nil {
			return wrong("cannot recover after a crash: %v", err)
		}
		if err := p.acquire(ctx); err != nil {
			return wrong("after a crash and Recover: %v", err)
		}
		for path, content := range files {
			if err := p.wants(ctx, path, content); err != nil {
				return wrong("after a crash: %v", err)
			}
		}
		return nil
	})
}

func cancelsWithoutATrace(ctx context.Context, env *Env) error {
	before, err := env.Places()
	if err != nil {
		return err
	}
	p, err := plan(env, env.Driver(), "cancel")
	if err != nil {
		return err
	}
	// At once, and at several moments of the start. Which step each of them
	// hits does not matter: wherever it is, either the place is whole or
	// nothing of it is there.
	for _, after := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 9 * time.Millisecond, 27 * time.Millisecond} {
		soon, cancel := context.WithTimeout(ctx, after)
		lease, err := p.driver.Acquire(soon, p.spec)
		cancel()
		if err != nil {
			if err := sameAs(ctx, env, before); err != nil {
				return wrong("canceled after %v: %v", after, err)
			}
			continue
		}
		p.lease, p.held = lease, true
		if after == 0 {
			return errors.Join(wrong("Acquire with a canceled context succeeds"), p.end(ctx))
		}
		if _, err := p.prints(ctx, "true"); err != nil {
			return errors.Join(wrong("Acquire, canceled late, returns a place that does not work: %v", err), p.end(ctx))
		}
		if err := p.end(ctx); err != nil {
			return err
		}
	}
	if err := p.acquire(ctx); err != nil {
		return wrong("after cancellations: %v", err)
	}
	return p.end(ctx)
}
