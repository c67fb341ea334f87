package drivertest

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// surroundings: everything that a Spec defines about the inside.
func surroundings() []Check {
	return []Check{
		{
			Name: "stands at the workspace",
			Why:  "the project is at its original path, and commands run there",
			Run:  standsAtTheWorkspace,
		},
		{
			Name: "has the environment it was given",
			Why:  "the environment is complete: a variable of the host that leaks may be a credential",
			Run:  hasItsEnvironment,
		},
		{
			Name:   "keeps its home",
			Why:    "HOME is persistent for the life of the sandbox, or known not to be",
			Needs:  func(c driver.Capabilities) bool { return c.KeepsHome },
			Run:    keepsItsHome,
			Absent: forgetsItsHome,
		},
		{
			Name: "runs as its user",
			Why:  "files made inside belong to the ids that the layers were made for, and tools want a name",
			Run:  runsAsItsUser,
		},
		{
			Name: "is called by its name",
			Why:  "prompts and logs inside tell sandboxes apart by the host name",
			Run:  isCalledByItsName,
		},
		{
			Name:   "mounts read-only",
			Why:    "toolchains are the user's own files, and only mounts.read-write is shared",
			Needs:  func(c driver.Capabilities) bool { return c.Mounts == sandbox.MountsAny },
			Run:    mountsReadOnly,
			Absent: refusesMounts,
		},
	}
}

func standsAtTheWorkspace(ctx context.Context, env *Env) error {
	return with(ctx, env, "stands", func(p *place) error {
		if p.mountless() {
			return p.printing(ctx, p.spec.Workspace.Upper, "pwd")
		}
		return p.printing(ctx, workspacePath, "pwd")
	})
}

// printing runs a command whose one line of output is known.
func (p *place) printing(ctx context.Context, want string, argv ...string) error {
	got, err := p.prints(ctx, argv...)
	if err != nil {
		return err
	}
	if got = strings.TrimSuffix(got, "\n"); got != want {
		return wrong("%q prints %q inside, want %q", argv, got, want)
	}
	return nil
}

func hasItsEnvironment(ctx context.Context, env *Env) error {
	return with(ctx, env, "environment", func(p *place) error {
		printed, err := p.prints(ctx, "env")
		if err != nil {
			return err
		}
		got := map[string]string{}
		for line := range strings.Lines(printed) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			got[key] = value
		}
		// The guest says where a command runs, as a shell would.
		delete(got, "PWD")
		want := p.spec.Env
		if p.mountless() {
			want = maps.Clone(want)
			want["HOME"], want["TMPDIR"] = filepath.Join(p.spec.StateDir, "home"), filepath.Join(p.spec.StateDir, "tmp")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return wrong("the environment inside differs (-want +got):\n%s", diff)
		}
		return nil
	})
}

func keepsItsHome(ctx context.Context, env *Env) error {
	return with(ctx, env, "home", func(p *place) error {
		if err := p.write(ctx, homePath+"/.profile", "mine\n"); err != nil {
			return wrong("cannot write into HOME: %v", err)
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		if err := p.acquire(ctx); err != nil {
			return err
		}
		return p.wants(ctx, homePath+"/.profile", "mine\n")
	})
}

func forgetsItsHome(ctx context.Context, env *Env) error {
	return with(ctx, env, "nohome", func(p *place) error {
		if err := p.write(ctx, homePath+"/.profile", "mine\n"); err != nil {
			return wrong("cannot write into HOME: %v", err)
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		if err := p.acquire(ctx); err != nil {
			return err
		}
		if content, err := p.read(ctx, homePath+"/.profile"); err == nil {
			return wrong("HOME is not kept, and holds %q after a stop", content)
		}
		return nil
	})
}

func runsAsItsUser(ctx context.Context, env *Env) error {
	return with(ctx, env, "user", func(p *place) error {
		names := map[string]string{
			"-u": strconv.Itoa(p.spec.User.UID), "-g": strconv.Itoa(p.spec.User.GID), "-un": p.spec.User.Name,
		}
		if p.mountless() {
			delete(names, "-un") // the host decides the names of ids
		}
		for flag, want := range names {
			if err := p.printing(ctx, want, "id", flag); err != nil {
				return err
			}
		}
		return nil
	})
}

func isCalledByItsName(ctx context.Context, env *Env) error {
	return with(ctx, env, "name", func(p *place) error {
		if p.mountless() {
			name, err := os.Hostname()
			if err != nil {
				return err
			}
			return p.printing(ctx, name, "uname", "-n")
		}
		return p.printing(ctx, p.spec.Name, "uname", "-n")
	})
}

func mountsReadOnly(ctx context.Context, env *Env) error {
	return with(ctx, env, "mounts", func(p *place) error {
		for _, mount := range []struct{ target, source, content string }{
			{mountedDir + "/tool", p.spec.Mounts[0].Source + "/tool", "a tool\n"},
			{mountedFile, p.spec.Mounts[1].Source, "a setting\n"},
		} {
			if err := p.wants(ctx, mount.target, mount.content); err != nil {
				return err
			}
			if err := p.write(ctx, mount.target, "replaced\n"); err == nil {
				return wrong("%s can be written inside", mount.target)
			}
			if got, err := os.ReadFile(mount.source); err != nil || string(got) != mount.content {
				return wrong("the host's %s holds %q (%v) after a write inside", mount.source, got, err)
			}
		}
		if err := p.write(ctx, mountedDir+"/planted", "new\n"); err == nil {
			return wrong("a new file can be made in a mounted directory")
		}
		return p.shares(ctx, p.spec.Mounts[2])
	})
}

// shares looks on the host for a write made inside.
func (p *place) shares(ctx context.Context, mount driver.Mount) error {
	if err := p.wants(ctx, mount.Target+"/note", "from the host\n"); err != nil {
		return err
	}
	if err := p.write(ctx, mount.Target+"/note", "from inside\n"); err != nil {
		return wrong("a shared file cannot be written: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(mount.Source, "note")); err != nil || string(got) != "from inside\n" {
		return wrong("the host's file holds %q (%v) after a write inside", got, err)
	}
	return nil
}

// refusesMounts asks for a mount from a driver that has none or only some.
func refusesMounts(ctx context.Context, env *Env) error {
	p, err := plan(env, env.Driver(), "mounted")
	if err != nil {
		return err
	}
	p.spec.Mounts = []driver.Mount{{Source: filepath.Join(env.Dir, "mounted", "tools"), Target: mountedDir}}
	lease, err := p.driver.Acquire(ctx, p.spec)
	if err == nil {
		err = p.driver.Destroy(ctx, lease, true)
	}
	return refused("a mount", err)
}
