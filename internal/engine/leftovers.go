package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Leftover is something that a crash, or a user with rm, has left behind.
type Leftover struct {
	What    string `json:"what"`
	Where   string `json:"where"`
	Fixed   bool   `json:"fixed"`
	Problem string `json:"problem,omitempty"` // why it could not be fixed

	fix func(context.Context) error
}

// leftovers finds what belongs to no sandbox. None of it is a user's work:
// branches, trash and history stay.
func (e *Engine) leftovers(ctx context.Context) ([]Leftover, error) {
	records, unreadable, err := e.sandboxes(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]*sandbox.Sandbox{}
	for _, one := range unreadable {
		known[one.ID] = &sandbox.Sandbox{ID: one.ID} // nothing of it is left over
	}
	for _, record := range records {
		known[record.ID] = record
	}
	found := slices.Concat(e.halfMade(records), e.abandonedSnapshots(records), e.halfWritten())
	mounts, err := e.strayMounts(func(id string) bool { return known[id] != nil })
	if err != nil {
		return nil, err
	}
	found = append(found, mounts...) // before the directories in which they are
	directories, err := e.unknownDirectories(known)
	if err != nil {
		return nil, err
	}
	found = append(found, directories...)
	unused, err := frozen.Unused(e.frozenStore(), e.frozenHolders)
	if err != nil && fault.KindOf(err) != fault.Conflict { // a sandbox that is moving keeps them all
		return nil, err
	}
	for _, name := range unused {
		found = append(found, Leftover{What: "a frozen layer that no sandbox or snapshot uses", Where: filepath.Join(e.frozenStore(), name),
			fix: func(context.Context) error { return e.sweepFrozen() }})
	}
	for _, gone := range []string{e.goneStore().Root, e.goneEnvironments()} {
		if !fileExists(gone) {
			continue
		}
		found = append(found, Leftover{What: "what an interrupted emptying of the trash left", Where: gone,
			fix: e.fixGone})
	}
	repositories, err := e.Store.Repositories()
	if err != nil {
		return nil, err
	}
	for _, gitDir := range repositories {
		inRepository, err := e.repositoryLeftovers(ctx, gitDir, known)
		if err != nil {
			return nil, err
		}
		found = append(found, inRepository...)
	}
	for _, name := range e.Drivers.Names() {
		d := e.Drivers.Get(name)
		finder, ok := d.(driver.StrayFinder)
		if !ok {
			continue
		}
		strays, err := finder.Strays(e.Store.Root, func(id string) bool { return fileExists(e.Store.SandboxDir(id)) || e.keptFar(id) })
		if err != nil {
			return nil, err
		}
		for _, stray := range strays {
			if stray.Shared && !e.everHad(stray.SandboxID) {
				continue // perhaps that of another state directory
			}
			found = append(found, Leftover{What: cmp.Or(stray.Kind, "a process") + " of a sandbox that is gone", Where: stray.SandboxID + " (" + stray.What + ")",
				fix: func(context.Context) error { return stray.End() }})
		}
	}
	return found, nil
}

// everHad reports whether this state directory had a sandbox with that id, by its
// events.
func (e *Engine) everHad(id string) (had bool) {
	err := e.Store.Events(0, func(event sandbox.Event) bool {
		had = event.SandboxID == id
		return !had
	})
	return had && err == nil
}

// halfMade are creations and deletions whose command died.
func (e *Engine) halfMade(records []*sandbox.Sandbox) []Leftover {
	var found []Leftover
	for _, record := range records {
		if record.State != sandbox.Creating && record.State != sandbox.Deleting || process.Alive(record.Holder) {
			continue
		}
		what := "a sandbox whose creation was interrupted"
		if record.State == sandbox.Deleting {
			what = "a sandbox whose deletion was interrupted"
		}
		found = append(found, Leftover{What: what, Where: record.Name + " of " + record.Repository,
			fix: func(ctx context.Context) error {
				_, err := e.clearDead(ctx, record.GitDir, record.Name)
				return err
			}})
	}
	return found
}

// unknownDirectories are directories of sandboxes without a record.
func (e *Engine) unknownDirectories(known map[string]*sandbox.Sandbox) ([]Leftover, error) {
	entries, err := os.ReadDir(filepath.Dir(e.Store.SandboxDir("x")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []Leftover
	for _, entry := range entries {
		info, err := entry.Info()
		if known[entry.Name()] != nil || err != nil || time.Since(info.ModTime()) < claimAge {
			continue
		}
		dir := e.Store.SandboxDir(entry.Name())
		found = append(found, Leftover{What: "the directory of a sandbox that has no record", Where: dir,
			fix: func(context.Context) error { return removeUnmounted(dir) }})
	}
	return found, nil
}

// repositoryLeftovers are pins, worktrees, names and unfinished layers of one
// repository.
func (e *Engine) repositoryLeftovers(ctx context.Context, gitDir string, known map[string]*sandbox.Sandbox) ([]Leftover, error) {
	var found []Leftover
	cache := e.cache(gitDir)
	entries, err := cache.Entries()
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Partial && time.Since(entry.Used) > cacheRest {
			found = append(found, Leftover{What: "a shared layer that was never finished", Where: entry.Dir,
				fix: func(ctx context.Context) error { _, err := cache.RemoveEntry(ctx, entry); return err }})
		}
	}
	names, err := e.Store.Names(gitDir)
	if err != nil {
		return nil, err
	}
	for name, id := range names {
		if known[id] != nil {
			continue
		}
		if id == "" {
			found = append(found, Leftover{What: "a name that cannot be read and that no sandbox has", Where: name,
				fix: func(context.Context) error { return e.Store.DropClaim(gitDir, name) }})
			continue
		}
		held, err := e.claimHeld(gitDir, name, id)
		if err != nil {
			return nil, err
		}
		if !held {
			found = append(found, Leftover{What: "the name of a sandbox that is gone", Where: name,
				fix: func(context.Context) error { _, err := e.clearClaim(gitDir, name, id); return err }})
		}
	}
	if !fileExists(gitDir) {
		return found, nil
	}
	repo := git.At(ctx, gitDir, "", "")
	found = append(found, e.deadPacks(repo)...)
	pins, err := repo.Pins(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range pins {
		if known[id] != nil || fileExists(e.Store.SandboxDir(id)) || fileExists(e.Store.Trash().SandboxDir(id)) {
			continue
		}
		pin := Leftover{What: "a ref that keeps the base of a sandbox that is gone", Where: id + " in " + gitDir,
			fix: func(ctx context.Context) error { return repo.Unpin(ctx, id) }}
		if !e.everHad(id) {
			pin.What = "a ref that keeps the base of a sandbox of which nothing is known here"
			pin.fix = func(context.Context) error {
				return fault.New(fault.Denied, "it is left: a sandbox of another state directory may need it").
					WithHint("litterbox doctor with the XDG_STATE_HOME that has the sandbox; where none has it: git update-ref -d refs/litterbox/keep/%s", id)
			}
		}
		found = append(found, pin)
	}
	return found, nil
}

// Fix clears away what Doctor found left behind, and says what became of each.
func (e *Engine) Fix(ctx context.Context, found []Leftover) []Leftover {
	var going []string
	for _, one := range found {
		going = append(going, one.What+": "+one.Where)
	}
	ctx, call, err := e.record(ctx, "doctor --fix", "", "", map[string]any{"going": going})
	defer func() {
		if endErr := call.end("", nil, nil); endErr != nil && len(found) > 0 {
			found[0].Problem = endErr.Error()
		}
	}()
	for i := range found {
		if err != nil {
			found[i].Problem = err.Error() // what cannot be logged is not done
		}
	}
	if err != nil {
		return found
	}
	for i := range found {
		if err := found[i].fix(ctx); err != nil {
			found[i].Problem = err.Error()
			if fault.HintOf(err) != "" {
				found[i].Problem = withHint(err)
			}
		} else {
			found[i].Fixed = true
		}
	}
	return found
}
