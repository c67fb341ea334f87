package engine

import (
	"context"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// SyncBackRequest brings files that a sandbox has changed into the checkout,
// without a merge.
type SyncBackRequest struct {
	Place
	Paths   []string // from the top of the checkout; none means all
	Exclude []string // patterns as rsync reads them
	Delete  bool     // files that the sandbox has deleted too
	DryRun  bool
	Yes     bool
	// Careful leaves out files that would need an answer, instead of asking.
	Careful bool
	// Confirm is asked about files that could run code on this machine, and about
	// those that hold the human's own uncommitted work; nil means that Yes is
	// needed.
	Confirm func(risky []Risk, yours []string) (bool, error)
	// Each is told of every file, before it is written.
	Each func(SyncedFile)
}

// SyncedFile is a file that a sync copies or deletes.
type SyncedFile struct {
	Path   string `json:"path"`
	Action string `json:"action"` // "write" or "delete"
}

// SyncResult says what a sync did, or would do.
type SyncResult struct {
	Files []SyncedFile
	Risks []Risk   // files among them that could run code on this machine
	Yours []string // files among them that hold uncommitted work of the human's
	Kept  []string // with Careful: files that need an answer
	Notes []string
}

// syncBackFile records files that came into the checkout without a merge.
const syncBackFile = "syncback.json"

type syncBackRecord struct {
	Version int               `json:"version"`
	Files   map[string]string `json:"files"` // object id, by path
}

// SyncBack brings a sandbox's changes since its base, as they are now, into the
// files of the checkout. Index and branches stay as they are. It is the only way
// besides a merge, and asks the same questions.
func (e *Engine) SyncBack(ctx context.Context, request SyncBackRequest) (result SyncResult, err error) {
	p, err := e.find(ctx, request.Dir, request.Name)
	if err != nil {
		return result, err
	}
	repo, err := git.Open(ctx, request.Dir)
	if err != nil {
		return result, err
	}
	tip, err := e.present(ctx, p)
	if err != nil {
		return result, err
	}
	had := syncBackRecord{Version: sandbox.RecordVersion, Files: map[string]string{}}
	if _, err := e.side(p, syncBackFile, &had); err != nil {
		return result, err
	}
	if had.Files == nil {
		had.Files = map[string]string{}
	}
	plan, err := landing.PlanBack(ctx, repo, p.record.Base, tip, landing.BackWants{
		Paths: request.Paths, Exclude: request.Exclude, Delete: request.Delete, Had: had.Files,
	})
	if err != nil {
		return result, err
	}
	if request.Careful {
		plan, result.Kept = plan.Without()
	}
	for _, c := range plan.Writes {
		result.Files = append(result.Files, syncedFile(c))
	}
	result.Risks, result.Yours = shown(plan.Risks), plan.Yours
	for _, left := range plan.Left {
		p.note("left out " + left)
	}
	result.Notes = p.notes
	if len(plan.Writes) == 0 && !request.Careful { // watch-back waits for files that come later
		if err := syncsSomething(ctx, repo, []string{p.record.Base, tip}, request.Paths); err != nil {
			return result, err
		}
	}
	if request.DryRun || len(plan.Writes) == 0 {
		return result, nil
	}
	if err := request.approve(result); err != nil {
		return result, err
	}
	ctx, call, err := e.recordIn(ctx, p, "sync-back", map[string]any{"paths": request.Paths, "delete": request.Delete})
	if err != nil {
		return result, err
	}
	defer func() { err = call.end(tip, nil, err) }()
	err = plan.Bring(ctx, repo, func(c landing.Change) {
		if request.Each != nil {
			request.Each(syncedFile(c))
		}
		had.Files[c.Path] = c.NewOid
	})
	if saved := p.store.SaveRecord(p.record.ID, syncBackFile, had); err == nil {
		err = saved
	}
	return result, err
}

func syncedFile(c landing.Change) SyncedFile {
	if c.NewMode == 0 {
		return SyncedFile{c.Path, "delete"}
	}
	return SyncedFile{c.Path, "write"}
}

// approve asks where there is something to ask about.
func (r SyncBackRequest) approve(result SyncResult) error {
	if r.Yes || len(result.Risks) == 0 && len(result.Yours) == 0 {
		return nil
	}
	if r.Confirm != nil {
		yes, err := r.Confirm(result.Risks, result.Yours)
		if err == nil && !yes {
			err = fault.New(fault.Canceled, "cannot sync sandbox %q back: nothing was written", r.Name)
		}
		return err
	}
	var named []string
	for _, risk := range result.Risks {
		named = append(named, risk.Path)
	}
	named = append(named, result.Yours...)
	slices.Sort(named)
	named = slices.Compact(named)
	return fault.New(fault.Denied, "cannot sync sandbox %q back without an answer: %s could run code on this machine or would replace changes of yours, among them %q",
		r.Name, counted(len(named), "file"), named[0]).
		WithHint("litterbox sync-back %s --dry-run, then with --yes", r.Name)
}
