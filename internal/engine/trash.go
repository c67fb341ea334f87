package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"golang.org/x/sys/unix"
)

// Trashed is a deleted sandbox of which something is left.
type Trashed struct {
	Entry      string     `json:"entry"` // its name with the time; names one of several of the same name
	Name       string     `json:"name"`
	Repository string     `json:"repository"`
	DeletedAt  time.Time  `json:"deleted_at"`
	Tip        string     `json:"tip"`     // its last commit
	Commits    int        `json:"commits"` // that were not merged then; 0 where that is not known
	Files      bool       `json:"files"`   // its files, its home and its log are kept
	Bytes      int64      `json:"bytes"`   // what those take
	Until      *time.Time `json:"until"`   // when prune clears the files away

	id   string
	tip  branch.Trashed  // zero when the repository has no ref of it
	repo *git.Repository // nil when it is gone
}

// trashAge is how long the files of a deleted sandbox stay unless retention.trash
// says otherwise.
const trashAge = 7 * 24 * time.Hour

// The free disk space needed for the files of a deleted sandbox to stay: a tenth
// of the disk, or this where that is less.
const trashReserve = 10 << 30

// trashKeeps is how long deleted files stay by the configuration; 0 for not at
// all.
func trashKeeps(retention config.Retention) time.Duration {
	switch {
	case retention.NoTrash:
		return 0
	case retention.Trash == 0:
		return trashAge
	}
	return retention.Trash
}

// roomForTrash reports whether a disk with that much free has room for files that
// might be wanted back.
func roomForTrash(free, total int64) bool { return free >= min(total/10, trashReserve) }

// inodesForTrash is the same for the number of files; a file system that counts
// none says 0.
func inodesForTrash(free, total uint64) bool { return free >= total/10 }

// keepsFiles says how long the files of a sandbox stay after its deletion, or why
// they do not.
func (e *Engine) keepsFiles(ctx context.Context, p *place) (stay time.Duration, why string) {
	found, err := e.settings(ctx, p.record.Repository, p.record.GitDir)
	if err == nil {
		if stay = trashKeeps(found.config.Retention); stay == 0 {
			return 0, "retention.trash keeps none"
		}
	} else {
		stay = trashAge // an unreadable configuration shortens nothing
	}
	if p.far() {
		if why := p.farKeeps(ctx); why != "" {
			return 0, why
		}
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(p.dir, &disk); err != nil {
		return stay, ""
	}
	if !roomForTrash(int64(disk.Bavail)*int64(disk.Bsize), int64(disk.Blocks)*int64(disk.Bsize)) || !inodesForTrash(disk.Ffree, disk.Files) {
		return 0, "the disk is nearly full"
	}
	return stay, ""
}

// intoTrash moves the remains of a deleted sandbox into the trash and gives its
// name up. It may be called again after a kill at any step.
func (e *Engine) intoTrash(p *place, d store.Deletion) error {
	if err := p.store.SaveDeletion(p.record.ID, d); err != nil {
		return err
	}
	if err := unmounted(p.dir); err != nil {
		return err
	}
	if err := e.removeWorktree(p); err != nil {
		return err
	}
	// A copy of the committed files, and the overlay's own directory, which the
	// next start makes again.
	for _, name := range []string{keeper.WorktreeDir, "work"} {
		if err := hostile.Remove(p.path(name)); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot remove %q of sandbox %q", name, p.record.Name)
		}
	}
	if err := p.store.MoveTo(p.store.Trash(), p.record.ID); err != nil {
		return err
	}
	return p.store.Release(p.record.GitDir, p.record.Name, p.record.ID)
}

// finishDeletion goes on with a deletion that keeps files and was cut off.
func (e *Engine) finishDeletion(ctx context.Context, p *place, d store.Deletion) error {
	tips, err := branch.TrashedTips(ctx, p.repo)
	if err != nil {
		return err
	}
	ref := branch.TrashRef(p.record.Name, d.At)
	if at := slices.IndexFunc(tips, func(t branch.Trashed) bool { return t.Ref == ref }); at >= 0 {
		// git may have died between the two refs; a branch that stands elsewhere
		// is another's.
		d.Tip = tips[at].Tip
		tip, err := p.repo.Tip(ctx, p.record.Branch)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
		if tip == d.Tip {
			if err := p.repo.DeleteBranch(ctx, p.record.Branch, tip); err != nil {
				return err
			}
		}
	} else if _, d.Tip, err = branch.Trash(ctx, p.repo, p.record.Branch, p.record.Name, d.At); err != nil && fault.KindOf(err) != fault.NotFound {
		return err
	}
	if err := e.endForGood(ctx, p); err != nil {
		return err
	}
	return e.intoTrash(p, d)
}

// Trash lists the deleted sandboxes of the repository at dir, or of all, of
// which something is left, newest first.
func (e *Engine) Trash(ctx context.Context, dir string, all bool) ([]Trashed, error) {
	gitDirs, err := e.Store.Repositories()
	if err != nil {
		return nil, err
	}
	if !all {
		one, err := gitDirOf(ctx, dir)
		if err != nil {
			return nil, err
		}
		gitDirs = []string{one}
	}
	records, _, err := e.Store.Trash().Sandboxes()
	if err != nil {
		return nil, err
	}
	found := []Trashed{}
	for _, gitDir := range gitDirs {
		in, err := e.trashOf(ctx, gitDir, records)
		if err != nil {
			return nil, err
		}
		found = append(found, in...)
	}
	slices.SortStableFunc(found, func(a, b Trashed) int { return b.DeletedAt.Compare(a.DeletedAt) })
	return found, nil
}

// trashOf joins the refs of one repository with the directories that are kept.
func (e *Engine) trashOf(ctx context.Context, gitDir string, records []*sandbox.Sandbox) ([]Trashed, error) {
	top := strings.TrimSuffix(gitDir, "/.git")
	var repo *git.Repository
	var tips []branch.Trashed
	if fileExists(gitDir) { // with the repository its commits went
		var err error
		repo = e.memory().At(ctx, gitDir, top, "")
		if tips, err = branch.TrashedTips(ctx, repo); err != nil {
			return nil, err
		}
	}
	var found []Trashed
	for _, tip := range tips {
		found = append(found, Trashed{Entry: tip.Entry(), Name: tip.Name, Repository: top, DeletedAt: tip.At, Tip: tip.Tip, tip: tip, repo: repo})
	}
	for _, record := range records {
		if record.GitDir != gitDir {
			continue
		}
		d, err := e.Store.Trash().Deletion(record.ID)
		if err != nil {
			d.At = record.CreatedAt // its note is damaged: the files are there all the same
		}
		ref := branch.TrashRef(record.Name, d.At)
		at := slices.IndexFunc(found, func(t Trashed) bool { return t.tip.Ref == ref })
		if at < 0 {
			lone := branch.Trashed{Ref: ref}
			found = append(found, Trashed{Entry: lone.Entry(), Name: record.Name, Repository: top, DeletedAt: d.At, Tip: cmp.Or(d.Tip, record.Last, record.Base), repo: repo})
			at = len(found) - 1
		}
		one := &found[at]
		one.Repository, one.id, one.Files, one.Commits = record.Repository, record.ID, true, d.Commits
		one.Bytes = inodes{}.size(e.Store.Trash().SandboxDir(record.ID)) + d.Far
		keeps := trashAge
		if settings, err := e.settings(ctx, record.Repository, gitDir); err == nil {
			keeps = trashKeeps(settings.config.Retention)
		}
		until := d.At.Add(keeps)
		one.Until = &until
	}
	return found, nil
}

// findTrashed finds the newest entry of a name, with the older ones, or exactly one
// entry.
func (e *Engine) findTrashed(ctx context.Context, dir, name string) (one Trashed, older []string, err error) {
	all, err := e.Trash(ctx, dir, false)
	if err != nil {
		return one, nil, err
	}
	slug, _ := sandbox.Slug(name) // an entry is none
	for _, each := range all {
		switch {
		case each.Entry == name:
			return each, nil, nil
		case each.Name != slug:
		case one.Entry == "":
			one = each
		default:
			older = append(older, each.Entry)
		}
	}
	if one.Entry == "" {
		return one, nil, noneTrashed(name, all)
	}
	return one, older, nil
}

// wasDeleted reports whether the trash of a repository has a sandbox called slug, as
// far as it can be read.
func (e *Engine) wasDeleted(ctx context.Context, gitDir, slug string) bool {
	if fileExists(gitDir) {
		tips, err := branch.TrashedTips(ctx, e.memory().At(ctx, gitDir, "", ""))
		if err == nil && slices.ContainsFunc(tips, func(t branch.Trashed) bool { return t.Name == slug }) {
			return true
		}
	}
	records, _, err := e.Store.Trash().Sandboxes()
	return err == nil && slices.ContainsFunc(records, func(r *sandbox.Sandbox) bool { return r.GitDir == gitDir && r.Name == slug })
}

// noneTrashed says that no deleted sandbox is called name.
func noneTrashed(name string, all []Trashed) error {
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	return fault.New(fault.NotFound, "no deleted sandbox named %q is in the trash%s", name, didYouMean(name, names)).
		WithHint("litterbox trash list")
}

// EmptyRequest asks to delete the contents of the trash.
type EmptyRequest struct {
	Dir    string
	All    bool      // of all repositories
	Names  []string  // empty means everything
	Before time.Time // when they were deleted; zero means at any time
	// Confirm shows what would go and asks; nil means agreed.
	Confirm func([]Trashed) (bool, error)
}

// EmptyTrash deletes entries of the trash for good, and returns which went.
func (e *Engine) EmptyTrash(ctx context.Context, request EmptyRequest) (gone []Trashed, err error) {
	all, err := e.Trash(ctx, request.Dir, request.All)
	if err != nil {
		return nil, err
	}
	var plan []Trashed
	for _, name := range request.Names {
		slug, _ := sandbox.Slug(name)
		named := func(t Trashed) bool { return t.Entry == name || t.Name == slug }
		if !slices.ContainsFunc(all, named) {
			return nil, noneTrashed(name, all)
		}
	}
	for _, one := range all {
		if len(request.Names) > 0 && !slices.ContainsFunc(request.Names, func(name string) bool {
			slug, _ := sandbox.Slug(name)
			return one.Entry == name || one.Name == slug
		}) {
			continue
		}
		if request.Before.IsZero() || one.DeletedAt.Before(request.Before) {
			plan = append(plan, one)
		}
	}
	if len(plan) == 0 {
		return []Trashed{}, e.sayGone(ctx)
	}
	if request.Confirm != nil {
		yes, err := request.Confirm(plan)
		if err != nil {
			return nil, err
		}
		if !yes {
			return nil, fault.New(fault.Canceled, "the trash was not emptied")
		}
	}
	var going []string
	for _, one := range plan {
		going = append(going, one.Entry)
	}
	ctx, call, err := e.record(ctx, "trash empty", request.Dir, "", map[string]any{"all": request.All, "going": going})
	if err != nil {
		return nil, err
	}
	defer func() { err = call.end("", nil, err) }()
	defer e.busy("emptying the trash")()
	ctx = context.WithoutCancel(ctx)
	gone = []Trashed{}
	var problems []error
	for _, one := range plan {
		if err := e.emptyOne(ctx, one, true); err != nil {
			problems = append(problems, err)
			continue
		}
		gone = append(gone, one)
	}
	return gone, errors.Join(append(problems, e.sayGone(ctx))...)
}

// goneStore is where directories of the trash go to be removed: its contents belong
// to no sandbox, and the next command that empties removes them. Those whose files are
// in a machine that does not answer stay until one finds that it does.
func (e *Engine) goneStore() *store.Store { return e.Store.Trash().Trash() }

// emptyOne deletes the remains of a sandbox: its files, and with tips its last
// commit. The directory leaves the trash at once; clearGone removes it.
func (e *Engine) emptyOne(ctx context.Context, one Trashed, tips bool) error {
	if one.id != "" {
		if err := unmounted(e.Store.Trash().SandboxDir(one.id)); err != nil {
			return err
		}
		if err := e.Store.Trash().MoveTo(e.goneStore(), one.id); err != nil {
			return err
		}
		if one.repo != nil {
			if err := one.repo.Unpin(ctx, one.id); err != nil {
				return err
			}
		}
	}
	if tips && one.tip.Ref != "" {
		if err := branch.DropTrash(ctx, one.repo, one.tip); err != nil {
			return err
		}
	}
	return nil
}

// moveTrash gives the trash of a moved repository to repo.
func (e *Engine) moveTrash(ctx context.Context, repo *git.Repository, old string) error {
	trash := e.Store.Trash()
	records, _, err := trash.Sandboxes()
	if err != nil {
		return err
	}
	for _, record := range records {
		if !orphaned(record) || old != "" && old != record.Repository && old != record.GitDir {
			continue
		}
		has, err := repo.Has(ctx, record.Base)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		record.Repository, record.GitDir = repo.Top, repo.CommonDir
		if err := trash.Save(record); err != nil {
			return err
		}
	}
	return nil
}
