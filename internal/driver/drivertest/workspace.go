package drivertest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// workspace: layers below, changes above.
func workspace() []Check {
	return []Check{
		{
			Name: "shows layers, topmost first",
			Why:  "a delta layer stands above the tree that it changes, the project above its history",
			Run:  showsLayers,
		},
		{
			Name: "never changes a layer",
			Why:  "layers are shared by every sandbox of a tree",
			Run:  neverChangesALayer,
		},
		{
			Name:   "puts changes into the upper directory",
			Why:    "the host commits what lies there, by reading it",
			Needs:  func(c driver.Capabilities) bool { return c.Files == sandbox.FilesShared },
			Run:    putsChangesIntoUpper,
			Absent: leavesUpperAlone,
		},
		{
			Name: "shows a copy",
			Why:  "where no layers can be mounted, the upper directory holds the whole workspace",
			Run:  showsACopy,
		},
		{
			Name: "keeps deletions",
			Why:  "what was removed stays removed in the next run, although a layer still has it",
			Run:  keepsDeletions,
		},
		{
			Name: "answers ownership the same each time",
			Why:  "the engine asks before it makes layers and upper directory, and again at the next start",
			Run:  answersOwnership,
		},
	}
}

func inside(name string) string { return workspacePath + "/" + name }

func showsLayers(ctx context.Context, env *Env) error {
	return with(ctx, env, "layers", func(p *place) error {
		for name, content := range map[string]string{
			"both.txt": topLayer["both.txt"], "dir/top.txt": topLayer["dir/top.txt"], "dir/bottom.txt": bottomLayer["dir/bottom.txt"],
		} {
			if err := p.wants(ctx, inside(name), content); err != nil {
				return err
			}
		}
		return nil
	})
}

// alter changes, adds and removes files inside.
func (p *place) alter(ctx context.Context) error {
	for name, content := range map[string]string{"changed.txt": "after\n", "new.txt": "new\n", "dir/new.txt": "new, below\n"} {
		if err := p.write(ctx, inside(name), content); err != nil {
			return wrong("cannot write %s inside: %v", name, err)
		}
	}
	_, err := p.prints(ctx, "rm", "gone.txt")
	return err
}

func neverChangesALayer(ctx context.Context, env *Env) error {
	return with(ctx, env, "readonly", func(p *place) error {
		if err := p.alter(ctx); err != nil {
			return err
		}
		for i, want := range []map[string]string{topLayer, bottomLayer}[:len(p.spec.Workspace.Layers)] {
			got, err := contents(p.spec.Workspace.Layers[i])
			if err != nil {
				return err
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return wrong("work inside changed layer %d (-before +after):\n%s", i, diff)
			}
		}
		return nil
	})
}

// contents reads a small tree.
func contents(root string) (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		found[name] = string(data)
		return err
	})
	return found, err
}

func putsChangesIntoUpper(ctx context.Context, env *Env) error {
	return with(ctx, env, "upper", func(p *place) error {
		if err := p.alter(ctx); err != nil {
			return err
		}
		for name, want := range map[string]string{"changed.txt": "after\n", "new.txt": "new\n", "dir/new.txt": "new, below\n"} {
			got, err := os.ReadFile(filepath.Join(p.spec.Workspace.Upper, name))
			if err != nil || string(got) != want {
				return wrong("%s holds %q in the upper directory (%v), want %q", name, got, err, want)
			}
		}
		if len(p.spec.Workspace.Layers) == 0 {
			return nil // a copy
		}
		if _, err := os.Lstat(filepath.Join(p.spec.Workspace.Upper, "dir", "bottom.txt")); err == nil {
			return wrong("the upper directory holds a file that has not been changed")
		}
		return nil
	})
}

// leavesUpperAlone looks for files that a driver carries and yet shares: a file
// that is only there sometimes would be taken for the whole.
func leavesUpperAlone(ctx context.Context, env *Env) error {
	return with(ctx, env, "carried", func(p *place) error {
		if err := p.alter(ctx); err != nil {
			return err
		}
		if _, err := os.Lstat(filepath.Join(p.spec.Workspace.Upper, "new.txt")); err == nil {
			return wrong("files are carried, and the host's upper directory holds them")
		}
		return nil
	})
}

func showsACopy(ctx context.Context, env *Env) error {
	p, err := plan(env, env.Driver(), "copy")
	if err != nil {
		return err
	}
	p.spec.Workspace.Layers = nil
	if err := fill(p.spec.Workspace, p.driver.Ownership(p.spec.SandboxID)); err != nil {
		return err
	}
	if err := p.acquire(ctx); err != nil {
		return err
	}
	return errors.Join(p.holdsCopy(ctx), p.end(ctx))
}

func (p *place) holdsCopy(ctx context.Context) error {
	for name, content := range map[string]string{"both.txt": topLayer["both.txt"], "dir/bottom.txt": bottomLayer["dir/bottom.txt"]} {
		if err := p.wants(ctx, inside(name), content); err != nil {
			return err
		}
	}
	if err := p.alter(ctx); err != nil {
		return err
	}
	for name, content := range map[string]string{"changed.txt": "after\n", "dir/new.txt": "new, below\n", "dir/top.txt": "only top\n"} {
		if err := p.wants(ctx, inside(name), content); err != nil {
			return err
		}
	}
	if content, err := p.read(ctx, inside("gone.txt")); err == nil {
		return wrong("a removed file is still there: %q", content)
	}
	return nil
}

func keepsDeletions(ctx context.Context, env *Env) error {
	return with(ctx, env, "deletion", func(p *place) error {
		if _, err := p.prints(ctx, "rm", "gone.txt"); err != nil {
			return err
		}
		if err := p.destroy(ctx, true); err != nil {
			return err
		}
		if err := p.acquire(ctx); err != nil {
			return err
		}
		if content, err := p.read(ctx, inside("gone.txt")); err == nil {
			return wrong("a removed file is back after a restart: %q", content)
		}
		return nil
	})
}

func answersOwnership(_ context.Context, env *Env) error {
	first := env.Driver().Ownership("owner")
	for _, d := range []driver.Driver{env.Driver(), env.Driver()} {
		if again := d.Ownership("owner"); again != first {
			return wrong("Ownership answers %+v and then %+v", first, again)
		}
	}
	return nil
}
