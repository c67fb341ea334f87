package drivertest

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// live: a directory of the host as the workspace.
func live() []Check {
	return []Check{
		{
			Name:   "shows a live directory",
			Why:    "an environment is the project itself: a copy would lose what is written in it, and programs of the host run what is read-only there",
			Needs:  func(c driver.Capabilities) bool { return c.Live },
			Run:    showsLive,
			Absent: refusesLive,
		},
	}
}

// liveFiles are in the host's directory before a place shows it.
var liveFiles = map[string]string{"plain.txt": "before\n", "kept.txt": "kept\n", "tools/run.sh": "true\n"}

// livePlan is a place whose workspace is a directory of the host, at its own path.
func livePlan(env *Env, id string) (*place, error) {
	p, err := plan(env, env.Driver(), id)
	if err != nil {
		return nil, err
	}
	top := filepath.Join(env.Dir, id, "project")
	for name, content := range liveFiles {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	p.spec.Workspace = driver.Workspace{Path: top, Live: &driver.Live{ReadOnly: []string{"kept.txt", "tools", "missing"}}}
	return p, nil
}

func withLive(ctx context.Context, env *Env, id string, use func(*place) error) error {
	p, err := livePlan(env, id)
	if err != nil {
		return err
	}
	if err := p.acquire(ctx); err != nil {
		return err
	}
	return errors.Join(use(p), p.end(ctx))
}

func showsLive(ctx context.Context, env *Env) error {
	return withLive(ctx, env, "live", func(p *place) error {
		top := p.spec.Workspace.Path
		if err := p.wants(ctx, filepath.Join(top, "plain.txt"), liveFiles["plain.txt"]); err != nil {
			return err
		}
		if err := p.write(ctx, filepath.Join(top, "plain.txt"), "after\n"); err != nil {
			return wrong("cannot write the live directory inside: %v", err)
		}
		if got, err := os.ReadFile(filepath.Join(top, "plain.txt")); err != nil || string(got) != "after\n" {
			return wrong("what was written inside is not in the host's directory: %q, %v", got, err)
		}
		if err := os.WriteFile(filepath.Join(top, "outside.txt"), []byte("from outside\n"), 0o644); err != nil {
			return err
		}
		if err := p.wants(ctx, filepath.Join(top, "outside.txt"), "from outside\n"); err != nil {
			return err
		}
		for _, name := range []string{"kept.txt", "tools/run.sh"} {
			path := filepath.Join(top, name)
			writing := p.write(ctx, path, "changed\n")
			got, err := os.ReadFile(path)
			if writing == nil || err != nil || string(got) != liveFiles[name] {
				return wrong("%s is read-only, and writing it answers %v and leaves %q (%v)", name, writing, got, err)
			}
		}
		return nil
	})
}

func refusesLive(ctx context.Context, env *Env) error {
	p, err := livePlan(env, "nolive")
	if err != nil {
		return err
	}
	lease, err := p.driver.Acquire(ctx, p.spec)
	if err == nil {
		p.lease, p.held = lease, true
		return errors.Join(wrong("a live workspace is not declared, and a place was made"), p.end(ctx))
	}
	return refused("Acquire of a live workspace", err)
}
