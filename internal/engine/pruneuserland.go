package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// userlandsDir holds the foundations above which packages are installed.
func (e *Engine) userlandsDir() string { return filepath.Join(e.Store.Root, "userlands") }

// planUserlands lists foundations above which no packages are installed.
func (e *Engine) planUserlands(now time.Time) ([]Pruned, error) {
	entries, err := os.ReadDir(e.userlandsDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list %q", e.userlandsDir())
	}
	var plan []Pruned
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || strings.Contains(entry.Name(), ".") {
			continue // gone, or one that is being made
		}
		dir := filepath.Join(e.userlandsDir(), entry.Name())
		used, err := e.userlandUsed(dir)
		if err != nil {
			return nil, err
		}
		if used {
			continue
		}
		one := Pruned{Kind: "userland", Name: entry.Name(), Bytes: inodes{}.size(dir), Why: "no packages are installed above it"}
		if age := now.Sub(info.ModTime()); age < cacheRest {
			one.Kept = "it was used " + age.Round(time.Second).String() + " ago"
		}
		plan = append(plan, one)
	}
	return plan, nil
}

// userlandUsed reports whether packages are, or are just being, installed above a
// foundation.
func (e *Engine) userlandUsed(dir string) (bool, error) {
	part := frozen.SystemPart(dir, "*")
	for _, pattern := range []string{filepath.Join(e.frozenStore(), "*", "caches", part), filepath.Join(e.Store.SandboxDir("*"), "caches", part)} {
		if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
			return true, err
		}
	}
	return false, nil
}

func (e *Engine) pruneUserland(one *Pruned) error {
	dir := filepath.Join(e.userlandsDir(), one.Name)
	if used, err := e.userlandUsed(dir); err != nil || used {
		one.Kept = "packages are being installed above it"
		return err
	}
	return hostile.Remove(dir)
}
