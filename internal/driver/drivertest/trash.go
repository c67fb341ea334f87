package drivertest

import (
	"context"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// trash: a sandbox that is deleted and restored.
func trash() []Check {
	return []Check{{
		Name: "comes back from the trash",
		Why:  "a sandbox that was deleted by mistake is restored with its files, and what the trash drops is gone in its machine, too",
		Run:  comesBackFromTheTrash,
	}}
}

func comesBackFromTheTrash(ctx context.Context, env *Env) error {
	return with(ctx, env, "deleted", func(p *place) error {
		path := filepath.Join(p.spec.Workspace.Path, "kept")
		if err := p.write(ctx, path, "mine\n"); err != nil {
			return wrong("cannot write into the workspace: %v", err)
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		deleted, err := p.delete(env)
		if err != nil {
			return err
		}
		if retainer, keeps := p.driver.(driver.Retainer); keeps {
			if _, err := retainer.Room(ctx, deleted); err != nil {
				return wrong("it does not say what room it has for a deleted sandbox: %v", err)
			}
		}
		if err := p.restore(deleted); err != nil {
			return err
		}
		if err := p.acquire(ctx); err != nil {
			return err
		}
		if err := p.wants(ctx, path, "mine\n"); err != nil {
			return err
		}
		return p.forgets(ctx, env, path)
	})
}

// forgets checks that a carrier forgets a sandbox whose directory is in the trash.
func (p *place) forgets(ctx context.Context, env *Env, path string) error {
	carrier, carries := p.driver.(driver.Carrier)
	if !carries {
		return nil
	}
	if err := p.destroy(ctx, true); err != nil {
		return err
	}
	deleted, err := p.delete(env)
	if err != nil {
		return err
	}
	for range 2 { // idempotent
		if err := carrier.Forget(ctx, deleted); err != nil {
			return wrong("cannot forget a sandbox of the trash: %v", err)
		}
	}
	if err := p.restore(deleted); err != nil {
		return err
	}
	if err := p.acquire(ctx); err != nil {
		return nil // it says that the files are gone
	}
	if content, err := p.read(ctx, path); err == nil {
		return wrong("a sandbox that was forgotten in the trash still has its file, with %q", content)
	}
	return nil
}

// delete moves the directory of a place that has ended to the trash, as the engine
// does, and returns its lease there.
func (p *place) delete(env *Env) (driver.Lease, error) {
	lease := p.lease
	lease.StateDir = filepath.Join(env.Dir, "trash", "trash", filepath.Base(filepath.Dir(p.lease.StateDir)), filepath.Base(p.lease.StateDir))
	if err := os.MkdirAll(filepath.Dir(lease.StateDir), 0o755); err != nil {
		return lease, err
	}
	return lease, os.Rename(p.lease.StateDir, lease.StateDir)
}

func (p *place) restore(deleted driver.Lease) error {
	return os.Rename(deleted.StateDir, p.lease.StateDir)
}
