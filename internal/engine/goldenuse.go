package engine

import (
	"bytes"
	"context"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// chooseGolden finds the golden that a new sandbox begins with; nil is none. A
// stale one is first made anew where the configuration says so.
func (e *Engine) chooseGolden(ctx context.Context, p *place, request CreateRequest) (*golden, error) {
	if request.NoGolden {
		return nil, nil
	}
	name := DefaultGolden
	if request.Golden != "" {
		var err error
		if name, err = sandbox.Slug(request.Golden); err != nil {
			return nil, err
		}
	}
	g, err := e.findGolden(p.record.GitDir, name)
	if err != nil || g == nil {
		if err == nil && request.Golden != "" {
			err = e.noGolden(p.record.GitDir, name, "begin with")
		}
		return nil, err
	}
	why := ""
	switch {
	case g.Driver != p.record.Driver:
		why = "it was built with the driver " + g.Driver
	case p.copied() || p.far():
		why = "it needs an overlay, and its files are a copy"
	}
	if why != "" && request.Golden != "" {
		return nil, fault.New(fault.Unsupported, "cannot begin with the golden %q: %s", name, why).WithHint("litterbox create %s --no-golden", p.record.Name)
	}
	if why != "" {
		p.note("it does not begin with the golden " + name + ": " + why)
		return nil, nil
	}
	if p.config.Golden.Refresh != config.RefreshAuto {
		return g, nil
	}
	return e.freshGolden(ctx, p, g, request)
}

// freshGolden makes a golden anew where it is stale.
func (e *Engine) freshGolden(ctx context.Context, p *place, g *golden, request CreateRequest) (*golden, error) {
	stale := func() (bool, error) {
		names, err := g.stale(ctx, p.repo, p.record.BaseTree, p.config, p.record.Image)
		return len(names) > 0, err
	}
	if is, err := stale(); err != nil || !is {
		return g, err
	}
	unlock, err := e.lockGolden(ctx, p.record.GitDir, g.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another command may have been faster.
	if newer, err := e.findGolden(p.record.GitDir, g.Name); err != nil {
		return nil, err
	} else if newer != nil {
		g = newer
	}
	if is, err := stale(); err != nil || !is {
		return g, err
	}
	built, err := e.buildGolden(ctx, p.record.GitDir, BuildRequest{
		Dir: request.Dir, Name: g.Name, Base: p.record.Base, Driver: p.record.Driver, Output: request.Output,
	})
	p.note(built.Notes...)
	if fault.KindOf(err) == fault.Canceled {
		return nil, err
	}
	if err != nil {
		without := "litterbox create " + p.record.Name + " --no-golden"
		if hint := fault.HintOf(err); hint != "" {
			without = hint + ", or " + without
		}
		return nil, fault.Wrap("", err, "cannot create %q with a golden that is not stale", p.record.Name).WithHint("%s", without)
	}
	p.note("golden " + g.Name + " was stale, and is built anew")
	return e.findGolden(p.record.GitDir, g.Name)
}

// lookForStale begins to look whether the golden of a new sandbox is stale. The
// returned function notes it.
func (e *Engine) lookForStale(ctx context.Context, p *place) func() {
	if p.golden == nil || p.building != nil || p.config.Golden.Refresh == config.RefreshAuto {
		return func() {}
	}
	g, tree, c, image := p.golden, p.record.BaseTree, p.config, p.record.Image
	type answer struct {
		names []string
		err   error
	}
	found := make(chan answer, 1)
	go func() {
		names, err := g.stale(ctx, p.repo, tree, c, image)
		found <- answer{names, err}
	}()
	return func() {
		switch got := <-found; {
		case got.err != nil:
			p.note("whether golden " + g.Name + " is stale is not known: " + got.err.Error())
		case len(got.names) > 0:
			p.note(g.staleNote(got.names))
		}
	}
}

// standOnGolden has a new sandbox, which has no files yet, begin with a golden.
func (e *Engine) standOnGolden(ctx context.Context, p *place) error {
	if p.golden == nil {
		return nil
	}
	for tries := 0; ; tries++ {
		_, err := p.driver.Fork(ctx, goldenLease(p.golden), p.golden.Layer, leaseOf(p))
		if err == nil && fileExists(e.goldenLayer(p.golden)) {
			return nil
		}
		// It may have been replaced since it was chosen.
		newer, findErr := e.findGolden(p.record.GitDir, p.golden.Name)
		if findErr != nil {
			return findErr
		}
		if newer == nil || newer.dir == p.golden.dir || tries > 3 {
			if err == nil {
				err = fault.New(fault.Internal, "its layer is gone")
			}
			return fault.Wrap("", err, "cannot begin with the golden %q", p.golden.Name).WithHint("%s", p.golden.rebuild())
		}
		p.golden = newer
	}
}

// goldenLayer is the directory of a golden's layer.
func (e *Engine) goldenLayer(g *golden) string { return e.frozenStore() + "/" + g.Layer }

// ownPlaceholders puts the sandbox's own placeholders where the golden has those of
// the sandbox that it was built in. Files that the base tracks are left alone.
func (e *Engine) ownPlaceholders(ctx context.Context, p *place) error {
	if p.golden == nil || len(p.golden.Placeholders) == 0 {
		return nil
	}
	own, err := keeper.ReadSecrets(p.dir)
	if err != nil {
		return err
	}
	base, err := layer.OpenBase(ctx, p.repo, p.files().Base())
	if err != nil {
		return err
	}
	defer base.Close()
	var paths []string
	for _, one := range p.golden.Placeholders {
		if !slices.Contains(paths, one.Path) {
			paths = append(paths, one.Path)
		}
	}
	for _, path := range paths {
		if part, below := frozen.PartOf(path); part == frozen.Below {
			if kind, _, err := base.Lookup(base.All(), below); err != nil || kind != layer.KindNone {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := e.boxOf(p).Rewrite(p.golden.Layer, path, func(content []byte) []byte {
			for _, one := range p.golden.Placeholders {
				for _, binding := range own.Bindings {
					if one.Path == path && one.Secret == binding.Name && binding.Placeholder != "" {
						content = bytes.ReplaceAll(content, []byte(one.Placeholder), []byte(binding.Placeholder))
					}
				}
			}
			return content
		}); err != nil {
			return err
		}
	}
	return nil
}

// goldenFrom is the golden that a name means when no sandbox has that name; empty
// when there is none.
func (e *Engine) goldenFrom(gitDir, name string, sandboxes map[string]string) (string, error) {
	slug, err := sandbox.Slug(name)
	if err != nil || sandboxes[slug] != "" {
		return "", err
	}
	g, err := e.findGolden(gitDir, slug)
	if err != nil || g == nil {
		return "", err
	}
	return g.Name, nil
}
