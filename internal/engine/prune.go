package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/image"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// PruneRequest asks to clear away what the retention policy does not keep.
type PruneRequest struct {
	Dir    string
	All    bool // of all repositories
	DryRun bool
	Force  bool // also sandboxes with work that is not merged
	// Confirm shows what would go and asks; nil means that it was agreed to.
	Confirm func([]Pruned) (bool, error)
}

// Pruned is one thing that goes, or would but must not.
type Pruned struct {
	Kind       string `json:"kind"` // "cache", "frozen", "image", "sandbox", "trash"
	Name       string `json:"name"`
	Repository string `json:"repository"`
	Bytes      int64  `json:"bytes"`
	Why        string `json:"why"`
	Kept       string `json:"kept,omitempty"` // why it stays nevertheless

	id    string
	trash Trashed
	layer sharedLayer
	image image.Unpacked
}

// cacheRest is how long a cache entry stays after its last use: a sandbox may
// be starting from it that is not recorded yet.
const cacheRest = 10 * time.Minute

// Prune clears away, in this order, cache entries that no sandbox uses, files of
// deleted sandboxes that were kept long enough, and
// sandboxes that [retention] does not keep. Nothing that runs goes, and without
// Force no work that is not merged. It returns what went, or would go, and what
// stays though the policy names it.
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
	if request.All {
		problems = append(problems, e.forgetRepositories())
	}
	return plan, errors.Join(problems...)
}

func (e *Engine) pruneOne(ctx context.Context, one *Pruned, request PruneRequest) error {
	if one.Kind == "sandbox" {
		// Looked at again under way: it may have got work since.
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
	if one.Kind == "trash" {
		return errors.Join(e.emptyOne(ctx, one.trash, false), e.clearGone())
	}
	var removed bool
	var err error
	if one.Kind == "image" {
		removed, err = e.images(driver.Ownership{}).Remove(ctx, one.image)
	} else {
		removed, err = one.layer.cache.RemoveEntry(ctx, one.layer.entry)
	}
	if err == nil && !removed {
		one.Kept = "it is just being built"
	}
	return err
}

func (e *Engine) planPrune(ctx context.Context, request PruneRequest) ([]Pruned, error) {
	defer e.busy("looking for what can go")()
	plan := []Pruned{}
	layers, err := e.sharedLayers(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, layer := range layers {
		if layer.used {
			continue
		}
		one := Pruned{Kind: "cache", Name: layer.entry.Kind + "/" + layer.entry.Key, Repository: layer.repository,
			Bytes: inodes{}.size(layer.entry.Dir), Why: "no sandbox uses it", layer: layer}
		if layer.entry.Partial {
			one.Why = "it was never finished"
		}
		if age := now.Sub(layer.entry.Used); age < 0 {
			// Its date is of a clock that was set back: it rests from now on.
			if !request.DryRun {
				layer.cache.Touch(layer.entry)
			}
			one.Kept = "it was used in the future, by its date; prune again in " + cacheRest.String()
		} else if age < cacheRest {
			one.Kept = "it was used " + age.Round(time.Second).String() + " ago"
		}
		plan = append(plan, one)
	}
	if request.All {
		unused, err := e.planImages(now)
		if err != nil {
			return nil, err
		}
		plan = append(plan, unused...)
	}
	unfrozen, err := frozen.Unused(e.frozenStore(), e.frozenHolders)
	if err != nil && fault.KindOf(err) != fault.Conflict { // one that is just moving keeps them all
		return nil, err
	}
	for _, name := range unfrozen {
		plan = append(plan, Pruned{Kind: "frozen", Name: name, Bytes: inodes{}.size(filepath.Join(e.frozenStore(), name)), Why: "no sandbox and no snapshot stands on it"})
	}
	trashed, err := e.Trash(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	for _, one := range trashed {
		if one.Files && one.Until != nil && now.After(*one.Until) {
			plan = append(plan, Pruned{Kind: "trash", Name: one.Entry, Repository: one.Repository, Bytes: one.Bytes,
				Why: "it was deleted " + days(now.Sub(one.DeletedAt)) + " ago; its commits stay", trash: one})
		}
	}
	infos, err := e.List(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	usage, err := e.DiskUsage(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	left := usage.Total
	for _, one := range plan {
		if one.Kept == "" {
			left -= one.Bytes
		}
	}
	byRepository := map[string][]Info{}
	for _, info := range infos {
		byRepository[info.Repository] = append(byRepository[info.Repository], info)
	}
	for repository, infos := range byRepository {
		sandboxes, err := e.planSandboxes(ctx, infos, &left, request.Force)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", repository, err)
		}
		plan = append(plan, sandboxes...)
	}
	return plan, nil
}

// planSandboxes applies one repository's [retention] to its sandboxes. left is
// what the whole would take after what is planned so far.
func (e *Engine) planSandboxes(ctx context.Context, infos []Info, left *int64, force bool) ([]Pruned, error) {
	policy := config.Retention{}
	user, err := config.LoadUser(callerOf(ctx))
	if err != nil {
		return nil, err
	}
	repo, err := config.Load(infos[0].Repository)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// What clears away sooner than the human's own file counts after trust only.
	gitDir := ""
	if record, err := e.Store.Sandbox(infos[0].ID); err == nil {
		gitDir = record.GitDir
	}
	trusted := false
	if gitDir != "" {
		if trusted, err = (config.Trust{File: e.Store.TrustFile()}).Trusted(gitDir, repo.Hash); err != nil {
			return nil, err
		}
	}
	merged, _ := config.Merge(user, repo, trusted)
	policy = merged.Retention
	if policy.MaxAge == 0 && policy.MaxDisk == 0 {
		return nil, nil
	}
	states := policy.States
	if len(states) == 0 {
		states = []string{string(sandbox.Stopped), string(sandbox.Failed)}
	}
	type candidate struct {
		Info
		last time.Time
	}
	var candidates []candidate
	for _, info := range infos {
		last := info.CreatedAt
		iterations, err := e.Store.Iterations(info.ID)
		if err != nil {
			return nil, err
		}
		if n := len(iterations); n > 0 {
			last = iterations[n-1].StartedAt
		}
		candidates = append(candidates, candidate{info, last})
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return b.last.Compare(a.last) }) // newest first
	if policy.KeepLast > 0 {
		candidates = candidates[min(policy.KeepLast, len(candidates)):]
	}
	var plan []Pruned
	now := time.Now()
	for _, one := range slices.Backward(candidates) {
		if !slices.Contains(states, string(one.State)) {
			continue
		}
		bytes := inodes{}.size(e.Store.SandboxDir(one.ID))
		why := ""
		switch age := now.Sub(one.last); {
		case policy.MaxAge > 0 && age > policy.MaxAge:
			why = "nothing happened in it for " + days(age)
		case policy.MaxDisk > 0 && *left > policy.MaxDisk:
			why = "it is the oldest, and together they take more than retention.max-disk"
		default:
			continue
		}
		pruned := Pruned{Kind: "sandbox", Name: one.Name, Repository: one.Repository, Bytes: bytes, Why: why, id: one.ID}
		if one.State == sandbox.Orphaned {
			if !force {
				pruned.Kept = "its repository is gone: nothing else has its work; --force deletes it"
			}
		} else if unmerged, err := e.unmerged(ctx, one.Info); err != nil {
			pruned.Kept = err.Error()
		} else if unmerged > 0 && !force {
			pruned.Kept = notMerged(unmerged) + "; --force deletes it"
		}
		if pruned.Kept == "" && one.State != sandbox.Orphaned && !force {
			if record, err := e.Store.Sandbox(one.ID); err == nil {
				pruned.Kept = e.unasked(ctx, e.place(record, nil, e.Drivers.Get(record.Driver)))
			}
		}
		if pruned.Kept == "" && one.State != sandbox.Orphaned {
			if pruned.Kept, err = e.inUse(ctx, one.ID); err != nil {
				return nil, err
			}
		}
		if pruned.Kept == "" {
			*left -= bytes
		}
		plan = append(plan, pruned)
	}
	slices.SortStableFunc(plan, func(a, b Pruned) int { return cmp.Compare(a.Name, b.Name) })
	return plan, nil
}

// inUse says what is at work in a sandbox; "" for nothing.
func (e *Engine) inUse(ctx context.Context, id string) (why string, err error) {
	err = e.onRecord(ctx, id, func(p *place) error {
		work, err := e.atWork(ctx, p)
		if len(work) > 0 {
			why = "it is at work: " + nameWork(work)
		}
		return err
	})
	return why, err
}

// unmerged counts the commits of a sandbox that HEAD of its repository does
// not have.
func (e *Engine) unmerged(ctx context.Context, info Info) (int, error) {
	repo, err := git.Open(ctx, info.Repository)
	if err != nil {
		return 0, err
	}
	if info.Head == "" {
		return 0, nil
	}
	return landing.Unmerged(ctx, repo, info.Branch, repo.Head)
}

// notMerged says that so many commits would be lost.
func notMerged(commits int) string {
	if commits == 1 {
		return "1 commit of it is not merged"
	}
	return itoa(commits) + " commits of it are not merged"
}

func days(d time.Duration) string {
	if d < 48*time.Hour {
		return d.Round(time.Hour).String()
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// forgetRepositories drops what is kept for repositories that are gone and
// have no sandbox left.
func (e *Engine) forgetRepositories() error {
	repositories, err := e.Store.Repositories()
	if err != nil {
		return err
	}
	records, unreadable, err := e.Store.Sandboxes()
	if err != nil || len(unreadable) > 0 {
		return err // whose repository theirs is nobody knows: all stay
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
