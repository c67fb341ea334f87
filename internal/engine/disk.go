package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// DiskUsage is the disk space that litterbox takes, in bytes of blocks.
type DiskUsage struct {
	Sandboxes []SandboxUsage `json:"sandboxes"`
	Caches    []CacheUsage   `json:"caches"`
	Images    int64          `json:"images_bytes"` // unpacked layers, which all repositories share; 0 for one repository
	Frozen    int64          `json:"frozen_bytes"` // layers that sandboxes, snapshots and forks stand on, each counted once
	Trash     int64          `json:"trash_bytes"`  // files of deleted sandboxes
	Logs      int64          `json:"logs_bytes"`   // the event log and what belongs to no sandbox
	// Machines are those that litterbox has made, such as containers with their
	// volumes, for all repositories; none for one repository. They hold what far
	// sandboxes have changed and what these share. Total is without them: their disk
	// is the engine's.
	Machines []MachineUsage `json:"machines"`
	Total    int64          `json:"total_bytes"`
}

// SandboxUsage is one sandbox's own part: shared parts are in CacheUsage.
type SandboxUsage struct {
	Name       string        `json:"name"`
	Repository string        `json:"repository"`
	State      sandbox.State `json:"state"`
	Changes    int64         `json:"changes_bytes"` // files that differ from the base, ignored ones included
	Home       int64         `json:"home_bytes"`
	Other      int64         `json:"other_bytes"` // temporary files, records, logs
	Total      int64         `json:"total_bytes"`
	Unknown    bool          `json:"unknown,omitempty"` // its machine does not say what the changes and the home take
}

// CacheUsage is the cache that the sandboxes of one repository share.
type CacheUsage struct {
	Repository string `json:"repository"`
	Entries    int    `json:"entries"`
	Total      int64  `json:"total_bytes"`
	Unused     int64  `json:"unused_bytes"` // of entries that no sandbox uses
}

// DiskUsage measures what the sandboxes of the repository at dir take, or
// those of all repositories.
func (e *Engine) DiskUsage(ctx context.Context, dir string, all bool) (DiskUsage, error) {
	defer e.busy("measuring what is on the disk")()
	usage := DiskUsage{Sandboxes: []SandboxUsage{}, Caches: []CacheUsage{}, Machines: []MachineUsage{}}
	shared, err := e.sharedLayers(ctx, dir, all)
	if err != nil {
		return usage, err
	}
	infos, err := e.List(ctx, dir, all)
	if err != nil {
		return usage, err
	}
	for _, info := range infos {
		one := SandboxUsage{Name: info.Name, Repository: info.Repository, State: info.State}
		if err := e.measure(ctx, info.ID, &one); err != nil {
			return usage, err
		}
		usage.Sandboxes = append(usage.Sandboxes, one)
		usage.Total += one.Total
	}
	caches := map[string]*CacheUsage{}
	seen := map[string]inodes{}
	for _, layer := range shared {
		cache := caches[layer.gitDir]
		if cache == nil {
			cache = &CacheUsage{Repository: layer.repository}
			caches[layer.gitDir], seen[layer.gitDir] = cache, inodes{}
		}
		size := seen[layer.gitDir].size(layer.entry.Dir)
		cache.Entries++
		cache.Total += size
		if !layer.used {
			cache.Unused += size
		}
	}
	for _, cache := range caches {
		usage.Caches = append(usage.Caches, *cache)
		usage.Total += cache.Total
	}
	slices.SortFunc(usage.Caches, func(a, b CacheUsage) int { return cmp.Compare(a.Repository, b.Repository) })
	logs, err := filepath.Glob(filepath.Join(e.Store.Root, "*.jsonl"))
	if err != nil {
		return usage, err
	}
	for _, log := range logs {
		usage.Logs += inodes{}.size(log)
	}
	trashed, err := e.Trash(ctx, dir, all)
	if err != nil {
		return usage, err
	}
	for _, one := range trashed {
		usage.Trash += one.Bytes
	}
	if all {
		layers, err := e.imageLayers()
		if err != nil {
			return usage, err
		}
		counted := inodes{}
		for _, layer := range layers {
			usage.Images += counted.size(layer.Dir)
		}
		if usage.Machines, err = e.madeMachines(ctx); err != nil {
			return usage, err
		}
	}
	if usage.Frozen, err = e.frozenSize(infos, all); err != nil {
		return usage, err
	}
	usage.Total += usage.Logs + usage.Images + usage.Trash + usage.Frozen
	return usage, nil
}

// measure fills in what one sandbox takes. Files in a machine of its own are not
// on this disk, and count here as far as the machine reports them.
func (e *Engine) measure(ctx context.Context, id string, one *SandboxUsage) error {
	whole := inodes{}.size(e.Store.SandboxDir(id))
	record, err := e.Store.Sandbox(id)
	if err != nil { // damaged, or just being deleted
		one.Other, one.Total = whole, whole
		return nil
	}
	p := e.place(record, nil, nil)
	if p.far() { // only then is the driver needed
		p.driver = e.Drivers.Get(record.Driver)
	}
	size, err := e.workspace(p).Size(ctx)
	if err != nil && !errors.Is(err, workspace.ErrUnknown) {
		return err
	}
	one.Unknown = err != nil
	one.Changes, one.Home, one.Other = size.Changes, size.Home, whole
	if !p.far() {
		one.Other = max(0, whole-size.Changes-size.Home) // it may grow meanwhile
	}
	one.Total = one.Changes + one.Home + one.Other
	return nil
}

// sharedLayer is an entry of some repository's cache.
type sharedLayer struct {
	repository, gitDir string
	cache              layer.Cache
	entry              layer.Entry
	used               bool // some sandbox has it among its layers
}

// sharedLayers lists the cache entries of the repositories that have a record
// of a sandbox, or of all that ever had one.
func (e *Engine) sharedLayers(ctx context.Context, dir string, all bool) ([]sharedLayer, error) {
	records, unreadable, err := e.Store.Sandboxes()
	if err != nil {
		return nil, err
	}
	// A sandbox in the trash needs its layers when it is restored.
	trashed, unreadableTrash, err := e.Store.Trash().Sandboxes()
	if err != nil {
		return nil, err
	}
	records, unreadable = append(records, trashed...), append(unreadable, unreadableTrash...)
	repositories, err := e.Store.Repositories()
	if err != nil {
		return nil, err
	}
	wanted := ""
	if !all {
		if wanted, err = gitDirOf(ctx, dir); err != nil {
			return nil, err
		}
	}
	var found []sharedLayer
	for _, gitDir := range repositories {
		if !all && gitDir != wanted {
			continue
		}
		cache := e.cache(gitDir)
		entries, err := cache.Entries()
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			layer := sharedLayer{repository: strings.TrimSuffix(gitDir, "/.git"), gitDir: gitDir, cache: cache, entry: entry,
				used: len(unreadable) > 0} // perhaps by one whose record cannot be read
			for _, record := range records {
				layer.used = layer.used || slices.ContainsFunc(record.Layers, entry.Serves)
			}
			found = append(found, layer)
		}
	}
	return found, nil
}

// inodes remembers files that were counted: a hard link takes no space.
type inodes hostile.Counted

// size adds up the blocks below path that were not counted yet.
func (seen inodes) size(path string) int64 { return hostile.Counted(seen).Size(path) }

// fileExists reports whether anything is at path.
func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
