package drivertest

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// recovery: the remains of crashes and cancellations.
func recovery() []Check {
	return []Check{
		{
			Name: "recovers twice",
			Why:  "two commands may find the same wreck, and a healthy place must survive a look at it",
			Run:  recoversTwice,
		},
		{
			Name: "survives a cut wire",
			Why:  "the end of a wire is not the end of a place: what runs there goes on, and the next wire finds it",
			Run:  survivesACutWire,
		},
		{
			Name: "tells silence from death",
			Why:  "what is only not reached is not recovered: work in a healthy place must not end because a network, or this process, lacks something",
			Run:  tellsSilenceFromDeath,
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

func survivesACutWire(ctx context.Context, env *Env) error {
	return with(ctx, env, "cut", func(p *place) error {
		before, err := p.greet(ctx)
		if err != nil {
			return err
		}
		conn, err := p.driver.Dial(ctx, p.lease)
		if err != nil {
			return wrong("cannot dial the place: %v", err)
		}
		link, err := wire.Connect(ctx, conn, p.keys.HostPrivate, p.keys.GuestPublic)
		if err != nil {
			return wrong("cannot talk over the dialled wire: %v", err)
		}
		running, err := keepRunning(ctx, link)
		if err != nil {
			return errors.Join(err, link.Close())
		}
		// Not the link, which would say goodbye.
		if err := conn.Close(); err != nil {
			return wrong("cannot close the wire: %v", err)
		}
		select {
		case <-running: // it goes with its client
		case <-ctx.Done():
			return wrong("a cut wire does not end its streams")
		}
		// A place that takes the cut for its end may do so a moment later.
		time.Sleep(stillTime)
		return errors.Join(p.isTheSame(ctx, before), link.Close())
	})
}

// isTheSame checks for the same guest as before.
func (p *place) isTheSame(ctx context.Context, before wire.Hello) error {
	if err := p.driver.Attach(ctx, p.lease); err != nil {
		return wrong("the place can no longer be attached to: %v", err)
	}
	after, err := p.greet(ctx)
	if err != nil {
		return err
	}
	if after.PID != before.PID || !after.Started.Equal(before.Started) {
		return wrong("another guest answers: process %d of %v, and before %d of %v", after.PID, after.Started, before.PID, before.Started)
	}
	return nil
}

func tellsSilenceFromDeath(ctx context.Context, env *Env) error {
	return with(ctx, env, "deaf", func(p *place) error {
		before, err := p.greet(ctx)
		if err != nil {
			return err
		}
		if err := env.Deafen(ctx, p.lease, true); err != nil {
			return err
		}
		found := p.isUnreachable(ctx)
		if err := env.Deafen(ctx, p.lease, false); err != nil {
			return errors.Join(found, err)
		}
		if found != nil {
			return found
		}
		return p.isTheSame(ctx, before)
	})
}

func (p *place) isUnreachable(ctx context.Context) error {
	answers := map[string]error{"Attach": p.driver.Attach(ctx, p.lease)}
	conn, err := p.driver.Dial(ctx, p.lease)
	if conn != nil {
		err = errors.Join(err, conn.Close())
	}
	answers["Dial"] = err
	_, answers["Recover"] = p.driver.Recover(ctx, p.lease)
	for what, err := range answers {
		if !errors.Is(err, driver.ErrUnreachable) {
			return wrong("%s of a place that is there and does not answer: %v, want ErrUnreachable", what, err)
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
	// At once, at several moments of the start, and (below) when its guest
	// first answers. It does not matter which step each of them hits: either the
	// place is whole or nothing of it is there.
	for _, after := range []time.Duration{0, time.Millisecond, 3 * time.Millisecond, 9 * time.Millisecond, 27 * time.Millisecond} {
		soon, cancel := context.WithTimeout(ctx, after)
		err := p.wholeOrNothing(ctx, soon, env, before)
		cancel()
		if err != nil {
			return wrong("canceled after %v: %v", after, err)
		}
	}
	for step := range 6 {
		soon, cancel := context.WithCancel(ctx)
		p.spec.Early = func(conn net.Conn) {
			go func() {
				defer cancel()
				p.follow(ctx, conn, step%3)
			}()
		}
		err := p.wholeOrNothing(ctx, soon, env, before)
		cancel()
		if err != nil {
			return wrong("canceled when its guest first answered (%d): %v", step%3, err)
		}
	}
	p.spec.Early = nil
	if err := p.acquire(ctx); err != nil {
		return wrong("after cancellations: %v", err)
	}
	return p.end(ctx)
}

// follow returns when the guest at the other end has sent its first byte (step
// 0), has shaken hands (1) or has answered a request (2): just before and just
// after it serves. The end of a start that fails ends the stream, and this.
func (p *place) follow(ctx context.Context, conn net.Conn, step int) {
	if step == 0 {
		_, _ = conn.Read(make([]byte, 1))
		conn.Close()
		return
	}
	link, err := wire.Connect(ctx, conn, p.keys.HostPrivate, p.keys.GuestPublic)
	if err != nil {
		return
	}
	defer link.Close()
	if step == 2 {
		_ = on(link, func(s wire.Stream) error { _, err := wire.Greet(ctx, s); return err })
	}
}

// wholeOrNothing acquires with a context that ends soon.
func (p *place) wholeOrNothing(ctx, soon context.Context, env *Env, before []string) error {
	late := soon.Err() != nil
	lease, err := p.driver.Acquire(soon, p.spec)
	if err != nil {
		return sameAs(ctx, env, before)
	}
	p.lease, p.held = lease, true
	if late {
		return errors.Join(wrong("Acquire with a canceled context succeeds"), p.end(ctx))
	}
	if _, err := p.prints(ctx, "true"); err != nil {
		return errors.Join(wrong("Acquire returns a place that does not work: %v", err), p.end(ctx))
	}
	return p.end(ctx)
}
