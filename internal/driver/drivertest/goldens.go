package drivertest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// unborn is the lease of a place that was never acquired.
func (p *place) unborn() driver.Lease {
	return driver.Lease{ID: p.spec.SandboxID, SandboxID: p.spec.SandboxID, StateDir: p.spec.StateDir}
}

// goldenOf is the lease of a golden, with a directory as deep as that of a sandbox.
func goldenOf(p *place) (driver.Lease, error) {
	dir := filepath.Join(filepath.Dir(p.spec.StateDir), "golden")
	return driver.Lease{ID: "golden", SandboxID: "golden", StateDir: dir}, os.MkdirAll(dir, 0o700)
}

// golden is what sandboxes of keepsGoldens begin with.
const golden = "kept in HOME, for A"

func keepsGoldens(ctx context.Context, env *Env) error {
	return with(ctx, env, "golden-origin", func(p *place) error {
		keeper, can := p.driver.(driver.GoldenKeeper)
		if !can {
			return wrong("goldens are declared, and the driver keeps none")
		}
		files := map[string]string{inside("kept.txt"): "kept", inside("other.txt"): "other", homePath + "/.kept": golden}
		if err := errors.Join(p.writeAll(ctx, files), p.destroy(ctx, true)); err != nil {
			return err
		}
		lease, err := goldenOf(p)
		if err != nil {
			return err
		}
		kept, err := keeper.KeepGolden(ctx, p.lease, lease, []string{"kept.txt"})
		if err != nil || kept.ID == "" {
			return wrong("cannot keep a golden: %+v, %v", kept, err)
		}
		if err := errors.Join(readsGolden(ctx, keeper, lease, kept.ID), writesGolden(ctx, keeper, lease, kept.ID)); err != nil {
			return err
		}
		one, err := begins(ctx, env, lease, kept.ID, "golden-one")
		if err != nil {
			return err
		}
		err = errors.Join(
			wantsGolden(ctx, one), one.write(ctx, inside("kept.txt"), "mine"), one.write(ctx, homePath+"/.kept", "mine"), anotherBegins(ctx, env, lease, kept.ID, "golden-two"),
			dropsGolden(ctx, keeper, one, lease, kept.ID),
		)
		return errors.Join(err, one.end(ctx))
	})
}

// readsGolden looks for the files of the golden in its archive.
func readsGolden(ctx context.Context, keeper driver.GoldenKeeper, lease driver.Lease, id string) error {
	stream, err := keeper.ReadGolden(ctx, lease, id)
	if err != nil {
		return wrong("cannot read a golden: %v", err)
	}
	defer stream.Close()
	var names []string
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return wrong("cannot read a golden: %v", err)
		}
		if header.Typeflag == tar.TypeReg {
			names = append(names, header.Name)
		}
	}
	for _, name := range []string{"below/kept.txt", "home/.kept"} {
		if !slices.Contains(names, name) {
			return wrong("a golden holds %q, and not %s", names, name)
		}
	}
	return nil
}

// errCut ends an archive in the middle.
var errCut = errors.New("the archive is cut")

// writesGolden makes another golden of the archive of one, unless the driver takes
// none, and none of half of it.
func writesGolden(ctx context.Context, keeper driver.GoldenKeeper, from driver.Lease, id string) error {
	stream, err := keeper.ReadGolden(ctx, from, id)
	if err != nil {
		return wrong("cannot read a golden: %v", err)
	}
	archive, err := io.ReadAll(stream)
	if err = errors.Join(err, stream.Close()); err != nil {
		return wrong("cannot read a golden: %v", err)
	}
	lease := driver.Lease{ID: "golden", SandboxID: "golden", StateDir: from.StateDir + "-written"}
	if err := os.MkdirAll(lease.StateDir, 0o700); err != nil {
		return err
	}
	half, broken := io.Pipe()
	go func() {
		_, _ = broken.Write(archive[:len(archive)/2/512*512]) // where an entry may end
		_ = broken.CloseWithError(errCut)
	}()
	_, err = keeper.WriteGolden(ctx, lease, half)
	if errors.Is(err, driver.ErrUnsupported) {
		return nil
	}
	if err == nil {
		return wrong("half an archive is a golden")
	}
	if err := keeper.DropGolden(ctx, lease); err != nil {
		return wrong("cannot drop half a golden: %v", err)
	}
	kept, err := keeper.WriteGolden(ctx, lease, bytes.NewReader(archive))
	if err != nil {
		return wrong("cannot make a golden of an archive: %v", err)
	}
	err = readsGolden(ctx, keeper, lease, kept.ID)
	if dropped := keeper.DropGolden(ctx, lease); dropped != nil {
		err = errors.Join(err, wrong("cannot drop a golden: %v", dropped))
	}
	return err
}

// begins makes a sandbox that begins with a golden.
func begins(ctx context.Context, env *Env, lease driver.Lease, id, name string) (*place, error) {
	d := env.Driver() // another process
	p, err := plan(env, d, name)
	if err != nil {
		return nil, err
	}
	keeper, can := d.(driver.GoldenKeeper)
	if !can {
		return nil, wrong("goldens are declared, and the driver keeps none")
	}
	if err := keeper.BeginWith(lease, id, []driver.Edit{{Path: "home/.kept", Old: "for A", New: "for B"}}, p.unborn()); err != nil {
		return nil, wrong("cannot begin with a golden: %v", err)
	}
	if got := keeper.BegunWith(p.unborn()); got != id {
		return nil, wrong("a sandbox has begun with the golden %q, want %q", got, id)
	}
	return p, p.acquire(ctx)
}

// wantsGolden looks for the golden's files, for those of the host, and for what is
// not part of the golden.
func wantsGolden(ctx context.Context, p *place) error {
	if err := p.wantsAll(ctx, map[string]string{inside("kept.txt"): "kept", homePath + "/.kept": "kept in HOME, for B"}); err != nil {
		return wrong("in a sandbox that began with a golden: %v", err)
	}
	if content, err := p.read(ctx, inside("other.txt")); err == nil {
		return wrong("a golden brings other.txt with %q, which is not part of it", content)
	}
	return nil
}

func anotherBegins(ctx context.Context, env *Env, lease driver.Lease, id, name string) error {
	p, err := begins(ctx, env, lease, id, name)
	if err != nil {
		return err
	}
	return errors.Join(wantsGolden(ctx, p), p.end(ctx))
}

// dropsGolden removes the golden below a sandbox that has begun with it.
func dropsGolden(ctx context.Context, keeper driver.GoldenKeeper, p *place, lease driver.Lease, id string) error {
	for range 2 {
		if err := keeper.DropGolden(ctx, lease); err != nil {
			return wrong("cannot drop a golden: %v", err)
		}
	}
	if stream, err := keeper.ReadGolden(ctx, lease, id); !errors.Is(err, driver.ErrNoSnapshot) {
		if err == nil {
			err = stream.Close()
		}
		return wrong("a dropped golden is read: %v, want ErrNoSnapshot", err)
	}
	return p.wantsAll(ctx, map[string]string{inside("kept.txt"): "mine", homePath + "/.kept": "mine"})
}

func refusesGoldens(ctx context.Context, env *Env) error {
	return with(ctx, env, "nogolden", func(p *place) error {
		keeper, can := p.driver.(driver.GoldenKeeper)
		if !can {
			return nil
		}
		lease, err := goldenOf(p)
		if err == nil {
			err = p.destroy(ctx, true)
		}
		if err != nil {
			return err
		}
		_, err = keeper.KeepGolden(ctx, p.lease, lease, nil)
		return refused("KeepGolden", err)
	})
}
