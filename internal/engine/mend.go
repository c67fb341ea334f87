package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// Records that a crash or a disk has damaged. The next command rewrites what can be
// known in another way, and says so; confinement is never guessed: without its
// policy nothing is allowed.

// sandbox reads the record of a sandbox, and makes a damaged one again.
func (e *Engine) sandbox(ctx context.Context, id string) (*sandbox.Sandbox, error) {
	record, err := e.Store.Sandbox(id)
	if !errors.Is(err, seal.ErrDamaged) {
		return record, err
	}
	unlock, err := e.Store.Lock(ctx, id, "record")
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another command may have been faster during the wait.
	if record, err = e.Store.Sandbox(id); !errors.Is(err, seal.ErrDamaged) {
		return record, err
	}
	name := nameOf(id)
	if record, err = e.remake(ctx, id); err != nil {
		return nil, fault.Wrap(fault.Internal, seal.ErrDamaged, "cannot use sandbox %q: %v", name, err).
			WithHint("take what you need from %s, then litterbox delete --force %s", e.Store.SandboxDir(id), name)
	}
	if err := e.Store.Durable(record.Strict).Save(record); err != nil {
		return nil, err
	}
	if e.Note != nil {
		e.Note("the record of sandbox " + name + " was damaged: it was rebuilt from its last start, its log and its branch")
	}
	return record, nil
}

// remake gives the record as it was at the last start, brought up to date from the
// log, or where that is damaged too, from the branch.
func (e *Engine) remake(ctx context.Context, id string) (*sandbox.Sandbox, error) {
	record, err := e.Store.Origin(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("its record is damaged, and it was never started since there are copies")
	}
	if err != nil {
		return nil, err
	}
	log, err := e.Store.Iterations(id)
	if err != nil {
		return nil, err
	}
	for _, one := range log {
		record.Iterations = max(record.Iterations, one.Number)
		if one.Commit != "" {
			record.Last = one.Commit
		}
		if one.Kind == "milestone" {
			record.Milestone = one.Commit
		}
	}
	repo := git.At(ctx, record.GitDir, record.Repository, record.Base)
	tip, err := repo.Tip(ctx, record.Branch)
	if err != nil && fault.KindOf(err) != fault.NotFound && !orphaned(record) {
		return nil, err
	}
	if err != nil {
		return record, nil // orphaned, as list and reattach will say
	}
	numbers, err := repo.TrailerOf(ctx, "Litterbox-Iteration", []string{tip})
	if err != nil {
		return nil, err
	}
	// Commits by the human on the branch are not iterations.
	var number int
	if json.Unmarshal([]byte(numbers[tip]), &number) == nil && number >= record.Iterations {
		record.Iterations, record.Last = number, tip
	}
	return record, nil
}

// nameOf is the name of a sandbox, by its id.
func nameOf(id string) string {
	if at := strings.LastIndexByte(id, '-'); at > 0 {
		return id[:at]
	}
	return id
}

// sandboxes lists the records of all sandboxes. Damaged ones are made again; those
// still unreadable are returned separately, and do not hide the rest.
func (e *Engine) sandboxes(ctx context.Context) ([]*sandbox.Sandbox, []store.Unreadable, error) {
	records, damaged, err := e.Store.Sandboxes()
	if err != nil || len(damaged) == 0 {
		return records, nil, err
	}
	var unreadable []store.Unreadable
	for _, one := range damaged {
		record, err := e.sandbox(ctx, one.ID)
		if err != nil {
			unreadable = append(unreadable, store.Unreadable{ID: one.ID, Err: err})
			continue
		}
		records = append(records, record)
	}
	slices.SortStableFunc(records, func(a, b *sandbox.Sandbox) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return records, unreadable, nil
}

// lease reads a sandbox's lease. A damaged one is written again by the keeper;
// without a keeper there is none, and the next start finds out what still runs.
func (e *Engine) lease(ctx context.Context, p *place) (*sandbox.Lease, error) {
	lease, err := p.store.Lease(p.record.ID)
	if !errors.Is(err, seal.ErrDamaged) {
		return lease, err
	}
	if err := p.tellKeeper(ctx, keeper.OpRenew); err != nil {
		return nil, err
	}
	lease, err = p.store.Lease(p.record.ID)
	if errors.Is(err, seal.ErrDamaged) {
		return nil, nil
	}
	return lease, err
}

// side reads a further record of a sandbox. A damaged one counts as missing: the
// next start writes it again from the configuration.
func (e *Engine) side(p *place, file string, into any) (found bool, err error) {
	found, err = p.store.Record(p.record.ID, file, into)
	if errors.Is(err, seal.ErrDamaged) {
		p.note(file + " of sandbox " + p.record.Name + " was damaged: it starts over from the configuration")
		return false, nil
	}
	return found, err
}

// denyAll replaces a damaged policy. What was allowed is no longer known, and a
// rule that was denied must not come back allowed.
func (p *place) denyAll(e *Engine) (*egress.Policy, error) {
	policy := &egress.Policy{Revision: 1}
	ctx, cancel := context.WithTimeout(context.Background(), linger)
	defer cancel()
	if cycles, err := p.store.Cycles(ctx, p.record.ID, 1); err == nil && len(cycles) > 0 {
		policy.Revision = cycles[len(cycles)-1].Policy + 1
	}
	p.note("the network policy of sandbox " + p.record.Name + " was damaged: now nothing is allowed; litterbox allow " + p.record.Name + " HOST allows again")
	return policy, p.savePolicy(policy)
}

// ownRules reads the limits of a sandbox. Damaged ones are replaced by those of the
// configuration.
func (p *place) ownRules() (keeper.Rules, error) {
	rules, err := keeper.ReadRules(p.dir)
	if errors.Is(err, seal.ErrDamaged) {
		p.note("the limits of sandbox " + p.record.Name + " were damaged: from its next start on they are those of the configuration")
		return keeper.Rules{}, nil
	}
	return rules, err
}

// deleteUnreadable deletes a sandbox whose record is lost. Its branch stays
// where it is.
func (e *Engine) deleteUnreadable(ctx context.Context, request DeleteRequest, name, id string) (DeleteResult, error) {
	repo, err := git.Open(ctx, request.Dir)
	if err != nil {
		return DeleteResult{}, err
	}
	record := &sandbox.Sandbox{ID: id, Name: name, Repository: repo.Top, GitDir: repo.CommonDir}
	for _, name := range e.Drivers.Names() {
		d := e.Drivers.Get(name)
		p := e.place(record, repo, d)
		if lease, err := e.lease(ctx, p); err == nil && lease != nil && lease.Driver != d.Name() {
			continue
		}
		if err := e.stop(ctx, p); err != nil {
			return DeleteResult{}, err
		}
	}
	if err := repo.Unpin(ctx, id); err != nil {
		return DeleteResult{}, err
	}
	return DeleteResult{Name: name}, e.remove(e.place(record, repo, nil))
}

// forgetKeys makes way for new keys where the old ones are damaged, and reports
// whether they were: a guest that has the old ones can no longer be reached.
func (p *place) forgetKeys() (bool, error) {
	data, err := os.ReadFile(p.path(keysFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var any map[string]any
	if err != nil || seal.Decode(data, &any) == nil {
		return false, err
	}
	return true, os.Remove(p.path(keysFile))
}
