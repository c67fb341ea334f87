package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// planGoldens lists goldens of repositories that are gone: nothing can begin with
// them again. Sandboxes that stand on one keep its files.
func (e *Engine) planGoldens() ([]Pruned, error) {
	dirs, err := e.goldenDirs("", "")
	if err != nil || len(dirs) == 0 {
		return nil, err
	}
	repositories, err := e.Store.Repositories()
	if err != nil {
		return nil, err
	}
	var plan []Pruned
	for _, dir := range dirs {
		one := Pruned{Kind: "golden", Name: goldenNameOf(dir), Why: "its repository is gone", golden: dir}
		g, err := readGolden(dir)
		switch {
		case err != nil:
			one.Kept = err.Error()
		case g != nil:
			if fileExists(g.GitDir) {
				continue
			}
			one.Repository, one.Bytes = g.Repository, g.Bytes
		default: // under way, or never finished: only the key of its repository is known
			if slices.ContainsFunc(repositories, func(gitDir string) bool {
				return strings.HasPrefix(filepath.Base(dir), store.RepositoryKey(gitDir)+"-") && fileExists(gitDir)
			}) {
				continue
			}
			one.Why = "it was never finished, and its repository is gone"
		}
		plan = append(plan, one)
	}
	return plan, nil
}

// pruneGolden removes one that planGoldens has listed.
func (e *Engine) pruneGolden(ctx context.Context, one *Pruned) error {
	g, err := readGolden(one.golden)
	if err != nil {
		return err
	}
	if g != nil {
		unlock, err := e.lockGolden(ctx, g.GitDir, g.Name) // one that is exported stays while it is read
		if err != nil {
			return err
		}
		defer unlock()
		if fileExists(g.GitDir) {
			one.Kept = "its repository is there again"
			return nil
		}
		if err := os.Remove(e.goldenLog(g.GitDir, g.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return errors.Join(e.removeGolden(ctx, one.golden), e.sweepFrozen())
}
