package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// planSandboxes applies one repository's [retention] to its sandboxes. left is the
// total size after what is planned so far.
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
	// Clearing away sooner than the human's own file says needs trust.
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
	now := e.now()
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

// notMerged says how many commits would be lost.
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
