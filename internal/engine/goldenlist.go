package engine

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Golden is one golden as listings show it. The JSON fields are pinned by a
// golden file; add, never rename.
type Golden struct {
	Name       string         `json:"name"`
	CreatedAt  time.Time      `json:"created_at"`
	Base       string         `json:"base"` // commit that it was built on
	BaseRef    string         `json:"base_ref"`
	Driver     string         `json:"driver"`
	Image      *sandbox.Image `json:"base_image"` // nil: the host's own userland
	Bytes      int64          `json:"bytes"`
	Took       float64        `json:"took_seconds"`
	Stale      []string       `json:"stale"`   // what it was made from that has changed since
	UsedBy     []string       `json:"used_by"` // sandboxes that stand on it
	MadeFrom   []string       `json:"made_from"`
	Repository string         `json:"repository"`
	Home       string         `json:"home"`
	Imported   bool           `json:"imported"`
	Log        string         `json:"log"` // file with the output of the last build; empty: none
}

// shownGolden is a golden without the parts that need a query.
func (e *Engine) shownGolden(g *golden) Golden {
	shown := Golden{
		Name: g.Name, CreatedAt: g.CreatedAt, Base: g.Base, BaseRef: g.BaseRef, Driver: g.Driver, Image: g.Image, Bytes: g.Bytes, Took: g.Took.Seconds(),
		Stale: []string{}, UsedBy: []string{}, MadeFrom: slices.Sorted(maps.Keys(g.MadeFrom)), Repository: g.Repository, Home: g.Home, Imported: g.Imported,
	}
	if log := e.goldenLog(g.GitDir, g.Name); fileExists(log) {
		shown.Log = log
	}
	return shown
}

// Goldens lists the goldens of a repository, and what is stale in each against HEAD
// and the present configuration.
func (e *Engine) Goldens(ctx context.Context, dir string) ([]Golden, error) {
	repo, err := e.memory().Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	found, err := e.goldens(repo.CommonDir)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	settings, err := e.settings(ctx, repo.Top, repo.CommonDir)
	if err != nil {
		return nil, err
	}
	records, _, err := e.Store.Sandboxes()
	if err != nil {
		return nil, err
	}
	var all []Golden
	for _, g := range found {
		shown := e.shownGolden(g)
		if shown.Stale, err = e.staleNow(ctx, repo, settings, g); err != nil {
			return nil, err
		}
		for _, record := range records {
			if e.onGolden(record.ID, record.Driver, g) {
				shown.UsedBy = append(shown.UsedBy, record.Name)
			}
		}
		all = append(all, shown)
	}
	return all, nil
}

// staleNow compares a golden with HEAD and the configuration. The image is that
// of the golden as long as the configuration names the same one.
func (e *Engine) staleNow(ctx context.Context, repo *git.Repository, s settings, g *golden) ([]string, error) {
	image := g.Image
	if d := e.Drivers.Get(g.Driver); d != nil {
		now, err := e.chooseBase(ctx, s.config, repo.Top, d, false)
		if err != nil && d.Traits().Files != sandbox.FilesCarried { // an engine may be away
			return nil, err
		}
		if err == nil {
			image = now
		}
	}
	names, err := g.stale(ctx, repo, repo.HeadTree, s.config, image)
	if names == nil {
		names = []string{}
	}
	return names, err
}

// GoldenOf gives one golden.
func (e *Engine) GoldenOf(ctx context.Context, dir, name string) (Golden, error) {
	all, err := e.Goldens(ctx, dir)
	if err != nil {
		return Golden{}, err
	}
	slug, err := goldenName(name)
	if err != nil {
		return Golden{}, err
	}
	var names []string
	for _, one := range all {
		if one.Name == slug {
			return one, nil
		}
		names = append(names, one.Name)
	}
	return Golden{}, missingGolden(slug, "show", names)
}

// goldenName is the name of a golden as typed; empty means the default one.
func goldenName(name string) (string, error) {
	if name == "" {
		return DefaultGolden, nil
	}
	return sandbox.Slug(name)
}

// GoldenLog opens the output of a golden's last build, failed ones included.
func (e *Engine) GoldenLog(ctx context.Context, dir, name string) (*os.File, error) {
	slug, err := goldenName(name)
	if err != nil {
		return nil, err
	}
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(e.goldenLog(gitDir, slug))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, e.noGoldenLog(gitDir, slug)
	}
	if err != nil {
		g := golden{Name: slug}
		return nil, fault.Wrap(fault.NotFound, err, "cannot read the log of the golden %q", slug).WithHint("%s", g.rebuild())
	}
	return file, nil
}

// noGoldenLog says why there is no log of that name.
func (e *Engine) noGoldenLog(gitDir, name string) error {
	g, err := e.findGolden(gitDir, name, "")
	if err != nil {
		return err
	}
	if g == nil {
		return e.noGolden(gitDir, name, "read the log of")
	}
	if g.Imported {
		return fault.New(fault.NotFound, "cannot read the log of the golden %q: it was imported, and not built here", name).
			WithHint("litterbox golden show %s", name)
	}
	return fault.New(fault.NotFound, "cannot read the log of the golden %q: the log is gone", name).WithHint("%s", g.rebuild())
}

// DeleteGolden deletes a golden. Sandboxes that stand on it keep its files, which
// go with the last of them. Of one whose delete was interrupted it removes the rest,
// and answers NotFound.
func (e *Engine) DeleteGolden(ctx context.Context, dir, name string) (gone Golden, err error) {
	slug, err := goldenName(name)
	if err != nil {
		return Golden{}, err
	}
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return Golden{}, err
	}
	ctx, call, err := e.record(ctx, "golden delete", dir, "", map[string]any{"golden": slug})
	if err != nil {
		return Golden{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	unlock, err := e.lockGolden(ctx, gitDir, slug)
	if err != nil {
		return Golden{}, err
	}
	defer unlock()
	g, err := e.findGolden(gitDir, slug, "")
	if err != nil {
		return Golden{}, err
	}
	if g == nil {
		// What an interrupted delete has left goes all the same.
		if err := e.clearGoldens(ctx, gitDir, slug); err != nil {
			return Golden{}, err
		}
		return Golden{}, e.noGolden(gitDir, slug, "delete")
	}
	gone = e.shownGolden(g)
	dirs, err := e.goldenDirs(gitDir, slug)
	if err != nil {
		return gone, err
	}
	for _, one := range dirs { // oldest first: none comes back
		if err := e.removeGolden(ctx, one); err != nil {
			return gone, err
		}
	}
	if err := e.removeGoldenLog(gitDir, slug); err != nil {
		return gone, err
	}
	gone.Log = ""
	return gone, e.sweepFrozen()
}

func (e *Engine) removeGoldenLog(gitDir, name string) error {
	if err := os.Remove(e.goldenLog(gitDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot remove the log of the golden %q", name)
	}
	return nil
}
