package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/packagecache"
)

// packageCaches lists the host's caches that this sandbox has below its own: only
// what exists now, and nothing that would show more than a cache. env is the
// environment of commands inside.
func (e *Engine) packageCaches(p *place, caller *caller.Caller, homeInside string, env map[string]string, mounts []Mount) []driver.Cache {
	home := caller.Home
	if home == "" || p.building != nil && p.building.request.NoCache {
		return nil
	}
	var found []driver.Cache
	for _, cache := range packagecache.Chosen(p.config.Container.PackageCaches, p.config.Container.BuildCaches, p.config.Editors.Cache) {
		source := cache.Locate(caller.Get, home)
		if source == "" {
			continue
		}
		source, err := filepath.EvalSymlinks(source)
		if err != nil || source == "/" {
			continue
		}
		if info, err := os.Stat(source); err != nil || !info.IsDir() {
			continue
		}
		// A variable can name anything; a directory that holds more than a cache is
		// not one.
		if within(home, source) || overlaps(e.Store.Shared(), source) || overlaps(p.record.Repository, source) {
			continue
		}
		target := cache.Locate(func(name string) string { return env[name] }, homeInside)
		if !mountable(target, homeInside, p.record.Repository) ||
			slices.ContainsFunc(mounts, func(m Mount) bool { return overlaps(m.Path, target) }) {
			continue
		}
		found = append(found, driver.Cache{Name: cache.Name, Source: source, Target: target, Hidden: cache.Hidden, Built: cache.Built()})
	}
	return found
}

func overlaps(a, b string) bool { return within(a, b) || within(b, a) }

// mountable reports whether a directory can be mounted there without covering
// anything of the sandbox's own.
func mountable(target, home, workspace string) bool {
	if target == "" || target == "/" || overlaps(target, workspace) || within(home, target) {
		return false
	}
	for _, own := range []string{"/proc", "/sys", "/dev", "/run", "/etc", "/bin", "/sbin", "/lib", "/lib64"} {
		if overlaps(target, own) {
			return false
		}
	}
	return true
}

// cacheMounts shows package caches in a listing.
func (p *place) cacheMounts(caches []driver.Cache) []Mount {
	var shown []Mount
	for _, cache := range caches {
		why := "package cache: " + cache.Name
		switch {
		case cache.Built:
			why = "build cache: " + cache.Name
		case slices.Contains(packagecache.EditorNames(), cache.Name):
			why = "servers of an editor: " + cache.Name
		}
		if cache.Source != cache.Target {
			why += ", from " + cache.Source
		}
		if reason, err := os.ReadFile(p.path("caches", cache.Name, driver.CacheReadOnly)); err == nil {
			why += "; " + strings.TrimSpace(string(reason))
		}
		shown = append(shown, Mount{Path: cache.Target, Why: why})
	}
	return shown
}
