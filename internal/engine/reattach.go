package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Reattached is one sandbox that belongs to a repository again, or why not.
type Reattached struct {
	Name    string   `json:"name"`
	Branch  string   `json:"branch"`
	Head    string   `json:"head"`
	Problem string   `json:"problem,omitempty"`
	Files   string   `json:"files,omitempty"` // where its changed files lie, when it could not be
	Notes   []string `json:"notes,omitempty"`
}

// Reattach gives the sandboxes of a repository that was moved, deleted or
// cloned again to the repository at dir. old is where it was; empty means every
// sandbox without a repository whose base this one has. A branch that is gone
// is made again, and what the sandbox holds is committed on it.
func (e *Engine) Reattach(ctx context.Context, dir, old string) (results []Reattached, err error) {
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	if old != "" {
		if old, err = filepath.Abs(old); err != nil {
			return nil, err
		}
	}
	ctx, call, err := e.record(ctx, "reattach", dir, "", map[string]any{"from": old})
	if err != nil {
		return nil, err
	}
	defer func() { err = call.end("", nil, err) }()
	records, _, err := e.sandboxes(ctx) // list reports the unreadable ones
	if err != nil {
		return nil, err
	}
	if err := e.moveTrash(ctx, repo, old); err != nil {
		return nil, err
	}
	results = []Reattached{}
	for _, record := range records {
		wanted, err := e.lost(ctx, repo, record, old)
		if err != nil {
			return results, err
		}
		if !wanted {
			continue
		}
		p := e.place(record, git.At(ctx, repo.CommonDir, repo.Top, record.Base), e.Drivers.Get(record.Driver))
		result := Reattached{Name: record.Name, Branch: record.Branch}
		if err := e.reattach(ctx, p, repo); err != nil {
			result.Problem, result.Files = err.Error(), e.workspace(p).Where()
		}
		if result.Head, err = p.repo.Tip(ctx, record.Branch); err != nil && fault.KindOf(err) != fault.NotFound {
			return results, err
		}
		result.Notes = p.notes
		results = append(results, result)
	}
	if len(results) == 0 {
		return results, fault.New(fault.NotFound, "no sandbox has lost its repository to this one").WithHint("litterbox list --all")
	}
	return results, nil
}

// lost reports whether the sandbox has no repository and should get this one.
func (e *Engine) lost(ctx context.Context, repo *git.Repository, record *sandbox.Sandbox, old string) (bool, error) {
	if record.State == sandbox.Creating || record.State == sandbox.Deleting || e.Drivers.Get(record.Driver) == nil {
		return false, nil
	}
	if record.GitDir == repo.CommonDir {
		_, err := repo.Tip(ctx, record.Branch)
		if fault.KindOf(err) == fault.NotFound {
			return true, nil
		}
		return false, err
	}
	if old != "" {
		if old != record.Repository && old != record.GitDir && filepath.Join(old, ".git") != record.GitDir {
			return false, nil
		}
		if orphaned(record) {
			return true, nil
		}
		// Another repository took the old one's place: it lacks this branch.
		_, err := git.At(ctx, record.GitDir, "", record.Base).Tip(ctx, record.Branch)
		if fault.KindOf(err) == fault.NotFound {
			return true, nil
		}
		return false, err
	}
	if !orphaned(record) {
		return false, nil
	}
	return repo.Has(ctx, record.Base)
}

func (e *Engine) reattach(ctx context.Context, p *place, repo *git.Repository) error {
	record := p.record
	has, err := repo.Has(ctx, record.Base)
	if err != nil {
		return err
	}
	if !has {
		return fault.New(fault.Conflict, "cannot give sandbox %q to this repository: it does not have the base commit %s", record.Name, record.Base).
			WithHint("git fetch the commit from somewhere, then litterbox reattach")
	}
	// What runs sees the project at its old path, and knows its old history.
	if err := e.stop(ctx, p); err != nil {
		return err
	}
	if err := e.remakeBranch(ctx, p, repo); err != nil {
		return err
	}
	if record.GitDir != repo.CommonDir {
		if err := p.store.Move(record, repo.CommonDir); err != nil {
			return err
		}
	}
	err = e.update(ctx, p, func(r *sandbox.Sandbox) {
		r.Repository, r.GitDir, r.State = repo.Top, repo.CommonDir, sandbox.Stopped
		r.Last, r.InnerHead = record.Last, record.InnerHead
	})
	if err != nil {
		return err
	}
	return e.settle(ctx, p)
}

// remakeBranch makes the branch again where it was last, or at the base when
// those commits are gone: then the files of the sandbox become one commit.
func (e *Engine) remakeBranch(ctx context.Context, p *place, repo *git.Repository) error {
	record := p.record
	_, err := repo.Tip(ctx, record.Branch)
	if fault.KindOf(err) != fault.NotFound {
		return errors.Join(err, repo.Pin(ctx, record.ID, record.Base))
	}
	start := record.Base
	if record.Last != "" {
		has, err := repo.Has(ctx, record.Last)
		if err != nil {
			return err
		}
		if has {
			start = record.Last
		} else {
			p.note("the commits of " + record.Branch + " went with the old repository: what its files hold now is one commit")
			record.Last, record.InnerHead = "", ""
			for _, path := range []string{p.deltaFile(), p.deltaFile() + ".next"} {
				if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
					return fault.Wrap(fault.Unavailable, err, "cannot forget what the branch %q held", record.Branch)
				}
			}
		}
	}
	if err := repo.CreateBranch(ctx, record.Branch, start, ""); err != nil {
		return err
	}
	return repo.Pin(ctx, record.ID, record.Base)
}
