package drivertest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// lifecycle: a place comes, is found again, and goes.
func lifecycle() []Check {
	return []Check{
		{
			Name: "says hello",
			Why:  "Acquire returns once the guest answers; a caller that dials needs no retries",
			Run:  saysHello,
		},
		{
			Name: "runs commands",
			Why:  "exit codes and streams pass through the driver's stream unharmed",
			Run:  runsCommands,
		},
		{
			Name: "answers its own keeper only",
			Why:  "the wire into a sandbox is a way to act in it; a stream that reaches it is not a permission",
			Run:  answersItsKeeper,
		},
		{
			Name: "acquires once",
			Why:  "two guests over one upper directory would corrupt it",
			Run:  acquiresOnce,
		},
		{
			Name: "is found from its record",
			Why:  "a lease outlives every process: any command re-attaches from what is on disk",
			Run:  isFoundFromItsRecord,
		},
		{
			Name: "is lost after destroy",
			Why:  "the engine tells a place that is gone from one that does not answer by the error alone",
			Run:  isLostAfterDestroy,
		},
		{
			Name: "destroys twice",
			Why:  "a stop that is repeated after an interruption must not fail over its first half",
			Run:  destroysTwice,
		},
		{
			Name: "destroys after an orderly end",
			Why:  "the keeper asks the guest to end and then calls Destroy without force",
			Run:  destroysAfterAnOrderlyEnd,
		},
		{
			Name: "destroys what runs",
			Why:  "a stopped sandbox has no process",
			Run:  destroysWhatRuns,
		},
		{
			Name: "fails without a trace",
			Why:  "on error nothing is left behind, whatever was wrong with the request",
			Run:  failsWithoutATrace,
		},
		{
			Name: "seals foreign errors",
			Why:  "callers decide by the named errors; an errno that leaks becomes a second, accidental interface",
			Run:  sealsForeignErrors,
		},
	}
}

func saysHello(ctx context.Context, env *Env) error {
	return with(ctx, env, "hello", func(p *place) error {
		hello, err := p.greet(ctx)
		if err != nil {
			return err
		}
		if hello.Version != wire.Version || hello.PID <= 0 || hello.Started.IsZero() {
			return wrong("the guest introduces itself as %+v, want version %d, a pid and a time", hello, wire.Version)
		}
		return nil
	})
}

func runsCommands(ctx context.Context, env *Env) error {
	return with(ctx, env, "commands", func(p *place) error {
		link, err := p.connect(ctx, p.driver)
		if err != nil {
			return err
		}
		defer link.Close()
		for _, want := range []struct {
			command
			code   int
			stdout string
		}{
			{command{argv: []string{"true"}}, 0, ""},
			{command{argv: []string{"false"}}, 1, ""},
			{command{argv: []string{"echo", "a  b", "c"}}, 0, "a  b c\n"},
			{command{argv: []string{"cat"}, stdin: "through and back"}, 0, "through and back"},
		} {
			got, err := execute(ctx, link, want.command)
			if err != nil {
				return err
			}
			if got.exit.Code != want.code || got.stdout != want.stdout {
				return wrong("%q exited %d and printed %q, want %d and %q", want.argv, got.exit.Code, got.stdout, want.code, want.stdout)
			}
		}
		return nil
	})
}

func answersItsKeeper(ctx context.Context, env *Env) error {
	return with(ctx, env, "keeper", func(p *place) error {
		stranger, err := wire.NewKeys()
		if err != nil {
			return err
		}
		conn, err := p.driver.Dial(ctx, p.lease)
		if err != nil {
			return wrong("cannot dial the place: %v", err)
		}
		if link, err := wire.Connect(ctx, conn, stranger.HostPrivate, p.keys.GuestPublic); err == nil {
			return errors.Join(wrong("a keeper with another key is let in"), link.Close())
		}
		return nil
	})
}

func acquiresOnce(ctx context.Context, env *Env) error {
	return with(ctx, env, "once", func(p *place) error {
		second, err := p.driver.Acquire(ctx, p.spec)
		if err == nil {
			return errors.Join(wrong("a second Acquire of a running place succeeds"), p.driver.Destroy(ctx, second, true))
		}
		if !errors.Is(err, driver.ErrLeaseUnavailable) {
			return wrong("a second Acquire fails with %v, want ErrLeaseUnavailable", err)
		}
		if _, err := p.prints(ctx, "true"); err != nil {
			return wrong("after a second Acquire the first place does not work: %v", err)
		}
		return nil
	})
}

func isFoundFromItsRecord(ctx context.Context, env *Env) error {
	return with(ctx, env, "record", func(p *place) error {
		record, err := json.Marshal(p.lease)
		if err != nil {
			return err
		}
		for range 2 { // any number of times
			other := *p
			other.driver, other.lease = env.Driver(), driver.Lease{}
			if err := json.Unmarshal(record, &other.lease); err != nil {
				return err
			}
			if err := other.driver.Attach(ctx, other.lease); err != nil {
				return wrong("cannot attach from the record: %v", err)
			}
			if _, err := other.prints(ctx, "true"); err != nil {
				return err
			}
		}
		return nil
	})
}

func isLostAfterDestroy(ctx context.Context, env *Env) error {
	return with(ctx, env, "lost", func(p *place) error {
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		if err := p.driver.Attach(ctx, p.lease); !errors.Is(err, driver.ErrMachineLost) {
			return wrong("Attach answers %v, want ErrMachineLost", err)
		}
		conn, err := p.driver.Dial(ctx, p.lease)
		if !errors.Is(err, driver.ErrMachineLost) {
			return errors.Join(wrong("Dial answers %v, want ErrMachineLost", err), closeIfOpen(conn))
		}
		return nil
	})
}

func closeIfOpen(c io.Closer) error {
	if c == nil {
		return nil
	}
	return c.Close()
}

func destroysTwice(ctx context.Context, env *Env) error {
	return with(ctx, env, "twice", func(p *place) error {
		for _, force := range []bool{true, true, false} {
			if err := p.destroy(ctx, force); err != nil {
				return err
			}
		}
		return nil
	})
}

func destroysAfterAnOrderlyEnd(ctx context.Context, env *Env) error {
	return with(ctx, env, "orderly", func(p *place) error {
		err := p.over(ctx, func(s wire.Stream) error { return wire.Shutdown(ctx, s, time.Second) })
		if err != nil {
			return wrong("cannot shut the guest down: %v", err)
		}
		// The guest answers and then ends; the checks are about what follows.
		for deadline := time.Now().Add(settleTime); ; time.Sleep(5 * time.Millisecond) {
			err := p.driver.Attach(ctx, p.lease)
			if errors.Is(err, driver.ErrMachineLost) {
				break
			}
			if time.Now().After(deadline) {
				return wrong("after its shutdown the guest can still be attached to: %v", err)
			}
		}
		return p.destroy(ctx, false)
	})
}

func destroysWhatRuns(ctx context.Context, env *Env) error {
	before, err := env.Places()
	if err != nil {
		return err
	}
	return with(ctx, env, "running", func(p *place) error {
		during, err := env.Places()
		if err != nil {
			return err
		}
		// A place of before may have been ending, and be gone by now.
		if !slices.ContainsFunc(during, func(one string) bool { return !slices.Contains(before, one) }) {
			return wrong("Places does not see what it shall count: %q", during)
		}
		link, err := p.connect(ctx, p.driver)
		if err != nil {
			return err
		}
		defer link.Close()
		running, err := keepRunning(ctx, link)
		if err != nil {
			return err
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		select {
		case <-running: // its stream ended with it
		case <-ctx.Done():
			return wrong("a command outlives Destroy")
		}
		return sameAs(ctx, env, before)
	})
}

// keepRunning starts a command that runs until its input ends, which it never
// does, and returns once it runs. The channel closes when its stream ends.
func keepRunning(ctx context.Context, link *wire.Link) (<-chan struct{}, error) {
	stdin, feed := io.Pipe()
	stdout, echo := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := on(link, func(s wire.Stream) error {
			_, err := wire.Run(ctx, s, wire.Exec{Argv: [][]byte{[]byte("cat")}}, wire.Streams{Stdin: stdin, Stdout: echo})
			return err
		})
		echo.CloseWithError(err)
		stdin.CloseWithError(err)
	}()
	if _, err := feed.Write([]byte("x")); err != nil {
		return nil, wrong("cannot start a command: %v", err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		return nil, wrong("a command that was started does not answer: %v", err)
	}
	return ended, nil
}

// settleTime is how long the kernel, or a hypervisor, may take to clear away
// ended processes.
const settleTime = 30 * time.Second

// sameAs waits until no more is running than before.
func sameAs(ctx context.Context, env *Env, before []string) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		now, err := env.Places()
		if err != nil {
			return err
		}
		if len(now) <= len(before) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return wrong("this is left behind: %q", now)
		}
	}
}

func failsWithoutATrace(ctx context.Context, env *Env) error {
	before, err := env.Places()
	if err != nil {
		return err
	}
	p, err := plan(env, env.Driver(), "broken")
	if err != nil {
		return err
	}
	layer := p.spec.Workspace.Upper
	if layers := p.spec.Workspace.Layers; len(layers) > 0 {
		layer = layers[1]
	}
	if err := os.Rename(layer, layer+".away"); err != nil {
		return err
	}
	if lease, err := p.driver.Acquire(ctx, p.spec); err == nil {
		return errors.Join(wrong("a place without one of its layers is acquired"), p.driver.Destroy(ctx, lease, true))
	}
	if err := sameAs(ctx, env, before); err != nil {
		return err
	}
	// With the layer back, nothing left of the failure may interfere.
	if err := os.Rename(layer+".away", layer); err != nil {
		return err
	}
	if err := p.acquire(ctx); err != nil {
		return wrong("after a failed Acquire: %v", err)
	}
	return p.end(ctx)
}

func sealsForeignErrors(ctx context.Context, env *Env) error {
	p, err := plan(env, env.Driver(), "sealed")
	if err != nil {
		return err
	}
	withoutLayer, withoutState := p.spec, p.spec
	withoutLayer.Workspace.Layers = []string{filepath.Join(env.Dir, "no-such-layer")}
	withoutState.StateDir = filepath.Join(env.Dir, "no-such-directory", "state")
	for what, spec := range map[string]driver.Spec{"layer": withoutLayer, "state directory": withoutState} {
		lease, err := p.driver.Acquire(ctx, spec)
		if err == nil {
			return errors.Join(wrong("a place without its %s is acquired", what), p.driver.Destroy(ctx, lease, true))
		}
		var errno syscall.Errno
		if errors.As(err, &errno) {
			return wrong("without its %s Acquire leaks a foreign error, %T: %v", what, errno, err)
		}
		if fault.KindOf(err) == fault.Internal {
			return wrong("without its %s Acquire fails without a kind: %v", what, err)
		}
	}
	return nil
}
