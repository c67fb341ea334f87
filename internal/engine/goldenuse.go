package engine

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// chooseGolden finds the golden that a new sandbox begins with; nil if there is none. A
// stale one is first made again where the configuration says so.
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
	g, err := e.findGolden(p.record.GitDir, name, p.record.Driver)
	if err == nil && g == nil {
		g, err = e.findGolden(p.record.GitDir, name, "")
	}
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
	case p.copied():
		why = "it needs an overlay, and its files are a copy"
	case p.far() && p.goldenKeeper() == nil:
		why = "its machine keeps no goldens"
	case p.far() && !sameImage(g.Image, p.record.Image):
		why = "it was built on another image, and is in the machine of that one"
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

// sameImage reports whether sandboxes of two images are in one machine of an engine.
func sameImage(a, b *sandbox.Image) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Digest == b.Digest && a.Engine == b.Engine && a.Runtime == b.Runtime
}

// freshGolden makes a golden again where it is stale.
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
	if newer, err := e.findGolden(p.record.GitDir, g.Name, g.Driver); err != nil {
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
	p.note("golden " + g.Name + " was stale and is rebuilt")
	return e.findGolden(p.record.GitDir, g.Name, g.Driver)
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
	if p.golden == nil || p.far() { // its files begin in the machine, see standOnFar
		return nil
	}
	for tries := 0; ; tries++ {
		_, err := p.driver.Fork(ctx, goldenLease(p.golden), p.golden.Layer, leaseOf(p))
		if err == nil && fileExists(e.goldenLayer(p.golden)) {
			return nil
		}
		// It may have been replaced since it was chosen.
		newer, findErr := e.findGolden(p.record.GitDir, p.golden.Name, p.golden.Driver)
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
// the sandbox that it was built in.
func (e *Engine) ownPlaceholders(ctx context.Context, p *place) error {
	if p.golden == nil {
		return nil
	}
	if p.far() {
		return e.standOnFar(ctx, p)
	}
	edits, err := e.placeholderEdits(ctx, p)
	if err != nil {
		return err
	}
	var own []frozen.Edit
	for _, one := range edits {
		own = append(own, frozen.Edit(one))
	}
	return e.boxOf(p).Edit(p.golden.Layer, own)
}

// placeholderEdits are the changes to files of a golden by which a sandbox has its own
// placeholders in them. Files that the base tracks are left alone.
func (e *Engine) placeholderEdits(ctx context.Context, p *place) (edits []driver.Edit, err error) {
	if len(p.golden.Placeholders) == 0 {
		return nil, nil
	}
	own, err := keeper.ReadSecrets(p.dir)
	if err != nil {
		return nil, err
	}
	base, err := layer.OpenBase(ctx, p.repo, p.files().Base())
	if err != nil {
		return nil, err
	}
	defer base.Close()
	for _, one := range p.golden.Placeholders {
		if part, below := frozen.PartOf(one.Path); part == frozen.Below {
			if kind, _, err := base.Lookup(base.All(), below); err != nil || kind != layer.KindNone {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		for _, binding := range own.Bindings {
			if one.Secret == binding.Name && binding.Placeholder != "" {
				edits = append(edits, driver.Edit{Path: one.Path, Old: one.Placeholder, New: binding.Placeholder})
			}
		}
	}
	return edits, nil
}

// goldenFrom is the golden that a name means when no sandbox has that name; empty
// when there is none.
func (e *Engine) goldenFrom(gitDir, name string, sandboxes map[string]string) (string, error) {
	slug, err := sandbox.Slug(name)
	if err != nil || sandboxes[slug] != "" {
		return "", err
	}
	g, err := e.findGolden(gitDir, slug, "")
	if err != nil || g == nil {
		return "", err
	}
	return g.Name, nil
}
