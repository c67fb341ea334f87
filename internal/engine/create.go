package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/local"
	"golang.org/x/sync/errgroup"
)

// Creation is what Create made, and what the user should know about it.
type Creation struct {
	Info
	Notes []string `json:"-"`
}

// Create makes a sandbox: a branch at the base, an overlay on the shared
// checkout of its tree, and a running place. Nothing that exists is replaced;
// on an error or when ctx ends nothing is left behind.
func (e *Engine) Create(ctx context.Context, request CreateRequest) (Creation, error) {
	return e.create(ctx, request, nil, nil)
}

// create is Create; worker, unless nil, says what a spawned sandbox began with. Of
// a sandbox for a golden only the golden stays.
func (e *Engine) create(ctx context.Context, request CreateRequest, worker func(*git.Repository) *sandbox.Worker, b *building) (made Creation, err error) {
	name, err := sandbox.Slug(request.Name)
	if err != nil {
		return Creation{}, err
	}
	repo, err := e.memory().Open(ctx, request.Dir)
	if err != nil {
		return Creation{}, err
	}
	if err := checkWorkspace(repo.Top); err != nil {
		return Creation{}, err
	}
	if request.Driver != "" { // before anything is asked
		if _, err := e.Drivers.Find(request.Driver); err != nil {
			return Creation{}, err
		}
	}
	found, err := e.settings(ctx, repo.Top, repo.CommonDir)
	if err != nil {
		return Creation{}, err
	}
	if found, err = e.review(ctx, repo, found, request); err != nil {
		return Creation{}, err
	}
	merged := found.config
	d, isolation, lacks, err := e.chooseDriver(e.ownVM(e.sharing(cmp.Or(request.Driver, driverOf(merged)), merged), merged.VM), request.AllowDegraded)
	if err != nil {
		return Creation{}, err
	}
	record := &sandbox.Sandbox{
		Name: name, Repository: repo.Top, GitDir: repo.CommonDir, Branch: merged.Git.BranchPrefix + name,
		Base: repo.Head, BaseTree: repo.HeadTree, BaseRef: strings.TrimPrefix(repo.HeadRef, "refs/heads/"),
		Driver: d.Name(), Isolation: isolation, State: sandbox.Creating, CreatedAt: e.now().UTC().Truncate(time.Millisecond),
	}
	if request.Base != "" {
		if record.Base, record.BaseTree, err = repo.Resolve(ctx, request.Base); err != nil {
			return Creation{}, err
		}
		record.BaseRef = request.Base
	}
	if request.Dirty && record.Base != repo.Head {
		return Creation{}, fault.New(fault.Invalid, "cannot bring uncommitted changes to %s: they were made on HEAD", request.Base).
			WithHint("litterbox create %s --dirty", name)
	}
	record.Strict = merged.Durability == config.Strict
	record.Temporary = b != nil
	record.Milestone, record.Snapshots = record.Base, automatic(merged.Snapshots)
	if worker != nil {
		record.Worker = worker(repo)
	}
	policy, err := e.policyOf(ctx, merged)
	if err == nil {
		err = connects(d, policy)
	}
	if err != nil {
		return Creation{}, err
	}
	if record.Image, err = e.chooseBase(ctx, merged, repo.Top, d, request.Pull); err != nil {
		return Creation{}, err
	}
	notes := slices.Concat(lacks, found.notes, runtimeless(d, merged), e.carry(ctx, d, record))
	ctx, call, err := e.record(ctx, "create", request.Dir, request.Name, map[string]any{"base": request.Base, "dirty": request.Dirty})
	if err != nil {
		return Creation{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	durably(ctx, record.Strict)
	if err := e.claim(ctx, record); err != nil {
		return Creation{}, err
	}
	p := e.place(record, repo, d)
	p.config, p.from, p.notes, p.said, p.building = merged, found.from, notes, found.said, b
	if p.building != nil {
		p.golden = p.building.from
	} else if p.golden, err = e.chooseGolden(ctx, p, request); err != nil {
		return Creation{}, errors.Join(err, e.discard(context.WithoutCancel(ctx), p))
	}
	if err := e.installConfigured(ctx, p, request.Output); err != nil {
		return Creation{}, errors.Join(err, e.discard(context.WithoutCancel(ctx), p))
	}
	if p.building != nil {
		if err := p.clearBuilt(ctx); err != nil {
			return Creation{}, errors.Join(err, e.discard(context.WithoutCancel(ctx), p))
		}
	}
	if err := e.build(ctx, p, policy, request); err != nil {
		if fault.KindOf(err) == fault.AlreadyExists { // the branch of a sandbox that lost its repository to this one
			err = e.elsewhere(ctx, request.Dir, name, branchInTheWay(err, record.Branch, "litterbox create "+name))
		}
		return Creation{}, errors.Join(err, e.discard(context.WithoutCancel(ctx), p))
	}
	if p.building != nil {
		err := p.building.run(ctx, e, p)
		return Creation{Notes: p.notes}, errors.Join(err, e.discard(context.WithoutCancel(ctx), p))
	}
	if err := e.furnish(ctx, p, request); err != nil {
		return Creation{}, errors.Join(err, e.discard(context.WithoutCancel(ctx), p))
	}
	e.flattenLater(ctx, p)
	head := record.Base
	if record.Last != "" {
		head = record.Last
	}
	lease, _ := e.Store.Lease(record.ID) // says who keeps limits
	return Creation{Info: e.info(record, head, sandbox.Running, lease), Notes: p.notes}, nil
}

// furnish brings the content of a new sandbox besides its base: copied files,
// uncommitted changes, the results of container.setup-command, and services.
func (e *Engine) furnish(ctx context.Context, p *place, request CreateRequest) error {
	if len(p.config.Copy) > 0 {
		if err := e.bringIgnored(ctx, p); err != nil {
			return err
		}
	}
	if request.Dirty {
		if err := e.bringUncommitted(ctx, p); err != nil {
			return err
		}
	}
	if len(p.config.Container.SetupCommand) > 0 && p.golden == nil { // it ran in the golden
		if err := e.setUp(ctx, p, request); err != nil {
			return err
		}
	}
	if len(p.config.Container.Services) > 0 {
		return e.startServices(ctx, p)
	}
	return nil
}

// build makes branch and place. They do not depend on each other, so they are
// made at the same time; the place, which takes longer, is begun first.
func (e *Engine) build(ctx context.Context, p *place, policy *egress.Policy, request CreateRequest) error {
	defer e.busy("making " + p.record.Name)()
	l := e.launch(ctx, p)
	spec, err := e.prepare(ctx, p, policy)
	if err != nil {
		l.abandon()
		return err
	}
	spec.Degraded = request.AllowDegraded
	record := p.record
	var lease *sandbox.Lease
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		var err error
		lease, err = l.command(groupCtx, e.order(p, spec, nil))
		return err
	})
	group.Go(func() error {
		return p.repo.CreateBranch(groupCtx, record.Branch, record.Base, record.ID)
	})
	staysOut := func() string { return "" }
	if !request.Dirty {
		staysOut = e.lookForChanges(ctx, p)
	}
	stale := e.lookForStale(ctx, p)
	err = group.Wait()
	note := staysOut()
	stale()
	if err != nil {
		return err
	}
	if note != "" {
		p.note(note)
	}
	if p.building != nil { // until it is gone no one works in it
		return nil
	}
	record.State = sandbox.Running
	if err := errors.Join(p.store.Save(record), p.store.SaveOrigin(record)); err != nil {
		return err
	}
	e.emit(ctx, p, event(sandbox.EventCreated, 0, "branch", record.Branch, "base", record.Base),
		event(sandbox.EventStarted, 0, "lease", lease.ID))
	return nil
}

// prepare makes the files that a new place begins with, and describes it.
func (e *Engine) prepare(ctx context.Context, p *place, policy *egress.Policy) (driver.Spec, error) {
	// The keeper takes a missing policy for an empty one.
	if err := p.savePolicy(policy); err != nil {
		return driver.Spec{}, err
	}
	identity, err := p.repo.Identity(ctx)
	if err != nil {
		return driver.Spec{}, err
	}
	p.record.Author = identity
	if err := e.standOnGolden(ctx, p); err != nil {
		return driver.Spec{}, err
	}
	if err := p.files().Prepare(local.Beginning{
		Branch: p.record.Branch, Commit: p.record.Base, Author: identity, Owner: e.upperOwner(p),
	}); err != nil {
		return driver.Spec{}, err
	}
	spec, err := e.spec(ctx, p, true)
	if err != nil {
		return spec, err
	}
	return spec, e.ownPlaceholders(ctx, p)
}

// lookForChanges begins to look whether the checkout holds uncommitted changes. The
// returned function ends that, and gives a note when there are any, or when it is
// not known yet: git status is slow in a large repository; making a sandbox is not.
func (e *Engine) lookForChanges(ctx context.Context, p *place) func() string {
	dirty := make(chan bool, 1)
	ctx, cancel := context.WithCancel(ctx)
	patience := time.After(dirtyPatience)
	if index, err := os.Stat(filepath.Join(p.repo.GitDir, "index")); err == nil && index.Size() < smallIndex {
		patience = time.After(busyPatience)
	}
	go func() {
		// Only for a note: a status that fails here fails for the user too.
		changed, err := p.repo.Dirty(ctx)
		dirty <- changed && err == nil
	}()
	return func() string {
		defer cancel()
		return changesNote(p.record.Repository, dirty, patience)
	}
}

// changesNote says what is known of uncommitted changes. An answer that is there
// counts, no matter how long creation took.
func changesNote(repository string, dirty <-chan bool, patience <-chan time.Time) string {
	var changed bool
	select {
	case changed = <-dirty:
	default:
		select {
		case changed = <-dirty:
		case <-patience:
			return "uncommitted changes, if there are any, stay out of the sandbox"
		}
	}
	if changed {
		return "uncommitted changes in " + repository + " stay out of the sandbox"
	}
	return ""
}

// dirtyPatience is how long git status may take before creation, when it is
// finished, no longer waits for it.
const dirtyPatience = 12 * time.Millisecond

// busyPatience is the same for a repository with an index of less than
// smallIndex bytes (some thousand files): there git status takes milliseconds,
// and longer only where everything takes longer.
const (
	busyPatience = time.Second
	smallIndex   = 256 << 10
)

func (e *Engine) upperOwner(p *place) git.Owner {
	own := p.driver.Ownership(p.record.ID)
	return git.Owner{UID: own.UpperUID, GID: own.UpperGID, Chown: own.UpperUID >= 0}
}
