package drivertest

import (
	"context"
	"errors"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// snapshots: states that are kept, returned to and copied.
func snapshots() []Check {
	freezes := func(c driver.Capabilities) bool { return c.Snapshots.Freeze }
	return []Check{
		{
			Name:   "returns to a snapshot",
			Why:    "an iteration can be taken back, with its deletions and what HOME held",
			Needs:  freezes,
			Run:    returnsToASnapshot,
			Absent: refusesSnapshot,
		},
		{
			Name:   "lists its snapshots",
			Why:    "what is kept takes room, and users choose by label and time which of it goes",
			Needs:  freezes,
			Run:    listsSnapshots,
			Absent: refusesSnapshots,
		},
		{
			Name:   "takes snapshots while it runs",
			Why:    "an agent at work notices nothing longer than a pause",
			Needs:  func(c driver.Capabilities) bool { return c.Snapshots.Live },
			Run:    takesLiveSnapshots,
			Absent: refusesLiveSnapshots,
		},
		{
			Name:   "brings processes back",
			Why:    "a machine's memory is part of what it was",
			Needs:  func(c driver.Capabilities) bool { return c.Snapshots.Memory },
			Run:    bringsProcessesBack,
			Absent: bringsNoProcesses,
		},
		{
			Name:   "forks",
			Why:    "several ways are tried from one state, and each stands on its own",
			Needs:  func(c driver.Capabilities) bool { return c.Fork },
			Run:    forks,
			Absent: refusesFork,
		},
		{
			Name:   "keeps goldens",
			Why:    "what takes minutes to build is there at the first command of each sandbox",
			Needs:  func(c driver.Capabilities) bool { return c.Goldens },
			Run:    keepsGoldens,
			Absent: refusesGoldens,
		},
	}
}

// keep takes a snapshot, and has the next Acquire use its layers.
func (p *place) keep(ctx context.Context, label string) (driver.Snapshot, error) {
	taken, err := p.driver.Snapshot(ctx, p.lease, label)
	if err != nil {
		return taken, wrong("cannot take a snapshot: %v", err)
	}
	if taken.ID == "" || taken.Label != label || taken.CreatedAt.IsZero() {
		return taken, wrong("the snapshot %q is %+v: it lacks an id, its label or its time", label, taken)
	}
	p.stack(taken.Layers)
	return taken, nil
}

// stack makes layers the workspace's, if it has any. A machine of its own keeps
// what was frozen, and builds on it by itself.
func (p *place) stack(layers []string) {
	if len(p.spec.Workspace.Layers) > 0 && p.driver.Traits().Files != sandbox.FilesCarried {
		p.spec.Workspace.Layers = layers
	}
}

// again starts a stopped place.
func (p *place) again(ctx context.Context) error {
	if err := p.acquire(ctx); err != nil {
		return wrong("after a snapshot: %v", err)
	}
	return nil
}

func (p *place) wantsAll(ctx context.Context, files map[string]string) error {
	for path, content := range files {
		if err := p.wants(ctx, path, content); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) writeAll(ctx context.Context, files map[string]string) error {
	for path, content := range files {
		if err := p.write(ctx, path, content); err != nil {
			return wrong("cannot write %s inside: %v", path, err)
		}
	}
	return nil
}

// states are the files of a sandbox at two moments.
func states() (one, two map[string]string) {
	one = map[string]string{inside("state.txt"): "one", inside("changed.txt"): "one", homePath + "/.state": "one"}
	two = map[string]string{inside("state.txt"): "two", inside("changed.txt"): "two", homePath + "/.state": "two", inside("later.txt"): "two"}
	return one, two
}

func returnsToASnapshot(ctx context.Context, env *Env) error {
	return with(ctx, env, "snapshot", func(p *place) error {
		one, two := states()
		if err := p.writeAll(ctx, one); err != nil {
			return err
		}
		if _, err := p.prints(ctx, "rm", "gone.txt"); err != nil {
			return err
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		taken, err := p.keep(ctx, "before two")
		if err != nil {
			return err
		}
		if err := p.again(ctx); err != nil {
			return err
		}
		if err := errors.Join(p.wantsAll(ctx, one), p.writeAll(ctx, two), p.write(ctx, inside("gone.txt"), "back")); err != nil {
			return wrong("after taking a snapshot: %v", err)
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		if err := p.driver.Revert(ctx, p.lease, taken.ID); err != nil {
			return wrong("cannot revert: %v", err)
		}
		p.stack(taken.Layers)
		if err := p.again(ctx); err != nil {
			return err
		}
		for _, name := range []string{"later.txt", "gone.txt"} {
			if content, err := p.read(ctx, inside(name)); err == nil {
				return wrong("after a revert %s still holds %q", name, content)
			}
		}
		return p.wantsAll(ctx, one)
	})
}

func refusesSnapshot(ctx context.Context, env *Env) error {
	return with(ctx, env, "nosnapshot", func(p *place) error {
		_, err := p.driver.Snapshot(ctx, p.lease, "contract")
		return errors.Join(refused("Snapshot", err), refused("Revert", p.driver.Revert(ctx, p.lease, "contract")))
	})
}

func listsSnapshots(ctx context.Context, env *Env) error {
	return with(ctx, env, "list", func(p *place) error {
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		var ids []string
		for _, label := range []string{"first", "second", "second"} { // labels are for humans
			taken, err := p.keep(ctx, label)
			if err != nil {
				return err
			}
			ids = append(ids, taken.ID)
		}
		if err := p.lists(ctx, env, ids); err != nil {
			return err
		}
		for range 2 { // deleting a missing one is not an error
			if err := p.driver.DeleteSnapshot(ctx, p.lease, ids[1]); err != nil {
				return wrong("cannot delete a snapshot: %v", err)
			}
		}
		if err := p.driver.Revert(ctx, p.lease, ids[1]); !errors.Is(err, driver.ErrNoSnapshot) {
			return wrong("Revert to a deleted snapshot answers %v, want ErrNoSnapshot", err)
		}
		return p.lists(ctx, env, slices.Delete(ids, 1, 2))
	})
}

// lists compares what another process would see.
func (p *place) lists(ctx context.Context, env *Env, want []string) error {
	all, err := env.Driver().Snapshots(ctx, p.lease)
	if err != nil {
		return wrong("cannot list snapshots: %v", err)
	}
	var got []string
	for _, one := range all {
		got = append(got, one.ID)
	}
	if !slices.Equal(got, want) {
		return wrong("the snapshots are %q, want %q", got, want)
	}
	return nil
}

func refusesSnapshots(ctx context.Context, env *Env) error {
	return with(ctx, env, "nolist", func(p *place) error {
		_, err := p.driver.Snapshots(ctx, p.lease)
		return errors.Join(refused("Snapshots", err), refused("DeleteSnapshot", p.driver.DeleteSnapshot(ctx, p.lease, "contract")))
	})
}

func takesLiveSnapshots(ctx context.Context, env *Env) error {
	return with(ctx, env, "live", func(p *place) error {
		one, two := states()
		if err := p.writeAll(ctx, one); err != nil {
			return err
		}
		taken, err := p.keep(ctx, "while it runs")
		if err != nil {
			return err
		}
		if err := errors.Join(p.wantsAll(ctx, one), p.writeAll(ctx, two)); err != nil {
			return wrong("after taking a snapshot while it runs: %v", err)
		}
		err = p.driver.Revert(ctx, p.lease, taken.ID)
		if errors.Is(err, driver.ErrHeld) { // then nothing has changed, and it works once nothing runs
			if err := errors.Join(p.wantsAll(ctx, two), p.destroy(ctx, true)); err != nil {
				return wrong("after a revert that was refused: %v", err)
			}
			if err = p.driver.Revert(ctx, p.lease, taken.ID); err == nil {
				p.stack(taken.Layers)
				err = p.again(ctx)
			}
		}
		if err != nil {
			return wrong("cannot revert to what was taken while it ran: %v", err)
		}
		p.stack(taken.Layers)
		if err := p.wantsAll(ctx, one); err != nil {
			return wrong("after a revert to what was taken while it ran: %v", err)
		}
		return nil
	})
}

func refusesLiveSnapshots(ctx context.Context, env *Env) error {
	want := driver.ErrUnsupported
	if env.Driver().Capabilities().Snapshots.Freeze {
		want = driver.ErrHeld
	}
	return with(ctx, env, "nolive", func(p *place) error {
		if _, err := p.driver.Snapshot(ctx, p.lease, "contract"); !errors.Is(err, want) {
			return wrong("Snapshot while it runs answers %v, want %v", err, want)
		}
		return nil
	})
}

func bringsProcessesBack(ctx context.Context, env *Env) error {
	return with(ctx, env, "memory", func(p *place) error {
		before, err := p.greet(ctx)
		if err != nil {
			return err
		}
		taken, err := p.keep(ctx, "with processes")
		if err != nil {
			return err
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		if err := p.driver.Revert(ctx, p.lease, taken.ID); err != nil {
			return wrong("cannot revert: %v", err)
		}
		if err := p.driver.Attach(ctx, p.lease); err != nil {
			return wrong("after a revert with processes: %v", err)
		}
		p.held = true
		after, err := p.greet(ctx)
		if err != nil {
			return err
		}
		if after.PID != before.PID || !after.Started.Equal(before.Started) {
			return wrong("a guest started at %v is process %d, and not the one that was kept", after.Started, after.PID)
		}
		return nil
	})
}

// bringsNoProcesses looks for a revert that starts something unasked.
func bringsNoProcesses(ctx context.Context, env *Env) error {
	can := env.Driver().Capabilities().Snapshots
	return with(ctx, env, "nomemory", func(p *place) error {
		if !can.Live {
			if err := p.destroy(ctx, true); err != nil {
				return err
			}
		}
		taken, err := p.driver.Snapshot(ctx, p.lease, "contract")
		if !can.Freeze {
			return refused("Snapshot", err)
		}
		if err != nil || taken.Memory {
			return wrong("a snapshot without processes is %+v: %v", taken, err)
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		if err := p.driver.Revert(ctx, p.lease, taken.ID); err != nil {
			return wrong("cannot revert: %v", err)
		}
		if err := p.driver.Attach(ctx, p.lease); !errors.Is(err, driver.ErrMachineLost) {
			p.held = true
			return wrong("after the revert of what had ended Attach answers %v, want ErrMachineLost", err)
		}
		return nil
	})
}

func forks(ctx context.Context, env *Env) error {
	return with(ctx, env, "origin", func(p *place) error {
		one, two := states()
		if err := p.writeAll(ctx, one); err != nil {
			return err
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		taken, err := p.keep(ctx, "to fork")
		if err != nil {
			return err
		}
		if err := p.again(ctx); err != nil {
			return err
		}
		if err := p.writeAll(ctx, two); err != nil {
			return err
		}
		other, err := plan(env, p.driver, "forked")
		if err != nil {
			return err
		}
		layers, err := p.driver.Fork(ctx, p.lease, taken.ID, driver.Lease{ID: other.spec.SandboxID, SandboxID: other.spec.SandboxID, StateDir: other.spec.StateDir})
		if err != nil {
			return wrong("cannot fork: %v", err)
		}
		other.stack(layers)
		if err := other.acquire(ctx); err != nil {
			return wrong("after a fork: %v", err)
		}
		return errors.Join(apart(ctx, p, other), other.end(ctx))
	})
}

// apart compares a sandbox in its second state with its fork from the first
// one, before and after the fork writes.
func apart(ctx context.Context, p, other *place) error {
	one, two := states()
	if err := other.wantsAll(ctx, one); err != nil {
		return wrong("in a fork: %v", err)
	}
	if err := p.wantsAll(ctx, two); err != nil {
		return wrong("beside a fork: %v", err)
	}
	if err := other.write(ctx, inside("state.txt"), "of the fork"); err != nil {
		return err
	}
	if err := p.wantsAll(ctx, two); err != nil {
		return wrong("after its fork has written: %v", err)
	}
	return nil
}

func refusesFork(ctx context.Context, env *Env) error {
	return with(ctx, env, "nofork", func(p *place) error {
		_, err := p.driver.Fork(ctx, p.lease, "contract", driver.Lease{ID: "forked", SandboxID: "forked", StateDir: p.spec.StateDir})
		return refused("Fork", err)
	})
}
