package engine

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/live"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Environments lists the live environments of this user, by path.
func (e *Engine) Environments(ctx context.Context) ([]Environment, error) {
	e, err := e.environments()
	if err != nil {
		return nil, err
	}
	records, unreadable, err := e.Store.Sandboxes()
	if err != nil {
		return nil, err
	}
	all := map[string]Environment{}
	for _, record := range records {
		one := Environment{
			Name: record.Name, Path: record.Repository, Driver: record.Driver, Isolation: record.Isolation, Network: e.info(record, "", "", nil).Network,
			WritableGit: record.Live != nil && record.Live.WritableGit, CreatedAt: record.CreatedAt, ID: record.ID,
		}
		one.State, one.Problem = e.state(ctx, record)
		if _, err := os.Stat(record.Repository); errors.Is(err, fs.ErrNotExist) {
			one.State, one.Problem = sandbox.Orphaned, "its directory is gone; litterbox env delete "+quoteCommand([]string{record.Repository})+" clears it away"
		}
		cycles, err := e.Store.LiveCycles(ctx, record.ID)
		if err != nil {
			return nil, err
		}
		for _, cycle := range cycles {
			if process.Alive(cycle.Holder) {
				one.Commands++
			}
		}
		one.Namespace = e.namespaceOf(record, one.State)
		all[record.Repository+"\x00"+record.ID] = one
	}
	for _, one := range unreadable {
		all["\xff"+one.ID] = Environment{Name: nameOf(one.ID), ID: one.ID, State: sandbox.Failed, Network: "unknown", Problem: one.Err.Error()}
	}
	listed := []Environment{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		listed = append(listed, all[key])
	}
	return listed, nil
}

// DeleteEnvironments ends live environments and removes what belongs to them: home,
// installed programs, logs. The project's own files stay as they are.
func (e *Engine) DeleteEnvironments(ctx context.Context, r EnvironmentDeletion) (deleted []Environment, err error) {
	listed, err := e.Environments(ctx)
	if err != nil {
		return nil, err
	}
	if !r.All {
		if listed, err = e.named(ctx, listed, r.Path); err != nil {
			return nil, err
		}
	}
	if e, err = e.environments(); err != nil {
		return nil, err
	}
	var problems []error
	for _, one := range listed {
		if one.Commands > 0 && !r.Stop {
			problems = append(problems, fault.New(fault.Conflict, "cannot delete environment %s: commands run in it", one.Name).
				WithHint("litterbox env delete --stop %s", quoteCommand([]string{one.Path})))
			continue
		}
		if err := e.deleteEnvironment(ctx, one); err != nil {
			problems = append(problems, err)
			continue
		}
		deleted = append(deleted, one)
	}
	return deleted, errors.Join(problems...)
}

// named is the environment of a directory, or of one whose name was given.
func (e *Engine) named(ctx context.Context, listed []Environment, path string) ([]Environment, error) {
	top := path
	if found, err := e.projectAt(ctx, path); err == nil {
		top = found.top
	}
	for _, one := range listed {
		if one.Path == top || one.Name == filepath.Base(path) {
			return []Environment{one}, nil
		}
	}
	return nil, fault.New(fault.NotFound, "%s has no environment", top).WithHint("litterbox env list")
}

func (e *Engine) deleteEnvironment(ctx context.Context, one Environment) (err error) {
	ctx, call, err := e.record(ctx, "env-delete", one.Path, one.Name, nil)
	if err != nil {
		return err
	}
	defer func() { err = call.end("", nil, err) }()
	record, err := e.sandbox(ctx, one.ID)
	if err != nil { // damaged, with the copy of it
		record = &sandbox.Sandbox{ID: one.ID, Name: one.Name, Repository: one.Path, Driver: e.Drivers.Default()}
	}
	p, err := e.livePlace(ctx, record)
	if err != nil {
		return err
	}
	if fileExists(p.path(recordFile)) && record.GitDir != "" {
		if err := e.markDeleting(ctx, p); err != nil {
			return err
		}
	}
	return e.removeEnvironment(ctx, p)
}

// removeEnvironment ends what runs and removes the directory, the record last, and
// what its machine keeps. It never touches the project, which is mounted inside only.
func (e *Engine) removeEnvironment(ctx context.Context, p *place) error {
	defer func() { e.say(p.notes) }()
	if err := e.endForGood(ctx, p); err != nil {
		return err
	}
	if err := unmounted(p.dir); err != nil {
		return err
	}
	if err := p.forgetFar(); err != nil {
		return e.leaveGone(p, err)
	}
	if p.driver.Ownership(p.record.ID).UpperUID >= 0 { // root's
		if err := (live.Accounts{}).Remove(ctx, p.record.Name); err != nil {
			return fault.Wrap("", err, "cannot remove the user account of environment %s", p.record.Name)
		}
	}
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, entry := range entries {
		if entry.Name() != recordFile {
			err = errors.Join(err, hostile.Remove(p.path(entry.Name())))
		}
	}
	if err == nil {
		err = hostile.Remove(p.dir)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot remove the files of environment %s", p.record.Name).
			WithHint("litterbox env delete %s", quoteCommand([]string{p.record.Repository}))
	}
	return p.store.Release(p.record.GitDir, p.record.Name, p.record.ID)
}

// refusedHere names what the network refused a command, and how to open it.
func (e *Engine) refusedHere(ctx context.Context, p *place, since time.Time) []string {
	text, rules := e.refusedInSetUp(context.WithoutCancel(ctx), p, since)
	if text = strings.TrimPrefix(text, "\n"); text == "" {
		return nil
	}
	if len(rules) > 0 {
		text += "; " + e.opening(ctx, p, rules) + ", litterbox env delete, then repeat"
	}
	return []string{text}
}
