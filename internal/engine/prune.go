package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/image"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// PruneRequest asks to clear away what the retention policy does not keep.
type PruneRequest struct {
	Dir    string
	All    bool // of all repositories
	DryRun bool
	Force  bool // also sandboxes with work that is not merged
	// Confirm shows what would go and asks; nil means agreed.
	Confirm func([]Pruned) (bool, error)
}

// Pruned is one thing that is removed, or would be but must stay.
type Pruned struct {
	Kind       string `json:"kind"` // "cache", "container", "disk image", "frozen", "golden", "image", "sandbox", "saved machine", "trash", "userland", "virtual machine"
	Name       string `json:"name"`
	Repository string `json:"repository"`
	Bytes      int64  `json:"bytes"`
	Why        string `json:"why"`
	Kept       string `json:"kept,omitempty"` // why it stays nevertheless

	id    string
	trash Trashed
	layer sharedLayer
	image image.Unpacked

	golden string // directory
	made   MachineUsage
}

// cacheRest is how long a cache entry stays after its last use: a sandbox may
// be starting from it that is not recorded yet.
const cacheRest = 10 * time.Minute

// Prune clears away, in this order, cache entries that no sandbox uses, goldens of
// repositories that are gone, containers that no sandbox is in, files of deleted
// sandboxes that were kept long enough, and sandboxes that [retention] does not keep.
// Nothing that runs goes, and without Force no work that is not merged. It returns
// what went, or would go, and what stays although the policy names it.
func (e *Engine) Prune(ctx context.Context, request PruneRequest) (plan []Pruned, err error) {
	plan, err = e.planPrune(ctx, request)
	if err != nil || request.DryRun {
		return plan, err
	}
	// Transcripts of agents stay as long as what deleted sandboxes leave.
	if err := e.forgetRuns(ctx); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(plan, func(one Pruned) bool { return one.Kept == "" }) {
		return plan, nil
	}
	if request.Confirm != nil {
		yes, err := request.Confirm(plan)
		if err != nil {
			return nil, err
		}
		if !yes {
			return nil, fault.New(fault.Canceled, "nothing was cleared away")
		}
	}
	var going []string
	for _, one := range plan {
		if one.Kept == "" {
			going = append(going, one.Kind+" "+one.Name)
		}
	}
	ctx, call, err := e.record(ctx, "prune", request.Dir, "", map[string]any{"all": request.All, "force": request.Force, "going": going})
	if err != nil {
		return nil, err
	}
	defer func() { err = call.end("", nil, err) }()
	var problems []error
	for i := range plan {
		one := &plan[i]
		if one.Kept != "" {
			continue
		}
		end := e.busy("clearing away " + one.Kind + " " + one.Name)
		err := e.pruneOne(ctx, one, request)
		if end(); err != nil {
			one.Kept = err.Error()
			problems = append(problems, err)
		}
	}
	if slices.ContainsFunc(plan, func(one Pruned) bool { return one.Kind == "trash" && one.Kept == "" }) {
		problems = append(problems, e.sayGone(ctx))
	}
	if request.All {
		problems = append(problems, e.forgetRepositories())
	}
	return plan, errors.Join(problems...)
}

func (e *Engine) pruneOne(ctx context.Context, one *Pruned, request PruneRequest) error {
	if one.Kind == "sandbox" {
		// Checked again just before: it may have got work since.
		record, err := e.Store.Sandbox(one.id)
		if err != nil {
			return err
		}
		if orphaned(record) {
			_, err = e.deleteOrphan(ctx, e.orphan(ctx, record), request.Force)
			return err
		}
		if one.Kept, err = e.inUse(ctx, one.id); err != nil || one.Kept != "" {
			return err
		}
		_, err = e.Delete(ctx, DeleteRequest{Dir: record.Repository, Name: record.Name, Force: request.Force, Lean: true})
		return err
	}
	if one.Kind == "frozen" {
		return e.sweepFrozen()
	}
	if one.made.Driver != "" {
		return e.pruneMachine(ctx, one)
	}
	if one.Kind == "golden" {
		return e.pruneGolden(ctx, one)
	}
	if one.Kind == "userland" {
		return e.pruneUserland(one)
	}
	if one.Kind == "trash" {
		return e.emptyOne(ctx, one.trash, false)
	}
	var removed bool
	var err error
	if one.Kind == "image" {
		removed, err = e.images(driver.Ownership{}).Remove(ctx, one.image)
	} else {
		removed, err = one.layer.cache.RemoveEntry(ctx, one.layer.entry)
	}
	if err == nil && !removed {
		one.Kept = "it is being built"
	}
	return err
}

// forgetRepositories drops the data of repositories that are gone and have no
// sandbox left.
func (e *Engine) forgetRepositories() error {
	repositories, err := e.Store.Repositories()
	if err != nil {
		return err
	}
	records, unreadable, err := e.Store.Sandboxes()
	if err != nil || len(unreadable) > 0 {
		return err // their repository is unknown: all stay
	}
	for _, gitDir := range repositories {
		dir := e.Store.RepositoryDir(gitDir) + "/"
		if slices.ContainsFunc(records, func(r *sandbox.Sandbox) bool {
			return slices.ContainsFunc(r.Layers, func(layer string) bool { return strings.HasPrefix(layer, dir) })
		}) {
			continue // reattached elsewhere; its layers are still there
		}
		names, err := os.ReadDir(filepath.Join(e.Store.RepositoryDir(gitDir), "names"))
		if fileExists(gitDir) || err == nil && len(names) > 0 {
			continue
		}
		if err := e.Store.ForgetRepository(gitDir); err != nil {
			return err
		}
	}
	return nil
}
