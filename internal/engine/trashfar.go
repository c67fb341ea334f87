package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// The files of a deleted sandbox whose place was in another machine stay where they
// are: only the directory here, which says where that is, moves to the trash and back
// (ADR 62).

// roomPatience is how long a machine may take to say what its disk has left, and how
// much files there take. Without an answer they are kept, unmeasured.
const roomPatience = 5 * time.Second

// farKeeps says why the machine of a sandbox does not keep its files; "" when it does.
func (p *place) farKeeps(ctx context.Context) string {
	retainer, keeps := p.driver.(driver.Retainer)
	if !keeps {
		return "they are in another machine, which cannot keep them"
	}
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	room, err := retainer.Room(ctx, p.lastLease())
	if err != nil || room.Free < 0 {
		return ""
	}
	if !roomForTrash(room.Free, room.Total) || !inodesForTrash(room.FreeInodes, room.Inodes) {
		return "the disk of its machine is nearly full"
	}
	return ""
}

// farSize is what the files of a sandbox take in another machine, as far as that says
// so in time.
func (p *place) farSize(ctx context.Context) int64 {
	carrier, lists := p.driver.(driver.Carrier)
	if !lists || !p.far() {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	changes, home, err := carrier.Files(p.lastLease()).Size(ctx)
	if err != nil {
		return 0
	}
	return max(changes, 0) + max(home, 0)
}

// gonePatience is how long a machine may take to remove files of the trash.
const gonePatience = 20 * time.Second

// clearGone removes what has left the trash, and what an interrupted emptying left, of
// sandboxes and of live environments. It says what stays because its machine does not
// answer.
func (e *Engine) clearGone(ctx context.Context) (stays []string, err error) {
	stays, err = e.clearGoneHere(ctx)
	if !fileExists(e.goneEnvironments()) {
		return stays, err
	}
	below, opened := e.environments()
	if opened != nil {
		return stays, errors.Join(err, opened)
	}
	more, cleared := below.clearGoneHere(ctx)
	return append(stays, more...), errors.Join(err, cleared)
}

// goneEnvironments is the directory of live environments that wait for their machine.
func (e *Engine) goneEnvironments() string {
	return filepath.Join(e.Store.Root, "environments", "trash", "trash")
}

// clearGoneHere is clearGone for this state directory alone.
func (e *Engine) clearGoneHere(ctx context.Context) (stays []string, err error) {
	gone := e.goneStore()
	entries, err := os.ReadDir(filepath.Dir(gone.SandboxDir("x")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read what has left the trash")
	}
	var problems []error
	away := map[string]error{} // by driver: a machine is waited for once
	for _, entry := range entries {
		p := e.gonePlace(entry.Name())
		if p != nil && away[p.record.Driver] == nil {
			if err := p.forgetGone(ctx); err != nil {
				away[p.record.Driver] = err
			}
		}
		if p != nil && away[p.record.Driver] != nil {
			stays = append(stays, p.staysFar(away[p.record.Driver]))
			continue
		}
		problems = append(problems, removeUnmounted(gone.SandboxDir(entry.Name())))
	}
	if len(stays) == 0 && errors.Join(problems...) == nil && fileExists(gone.Root) {
		problems = append(problems, removeUnmounted(gone.Root))
	}
	return stays, errors.Join(append(problems, e.sweepFrozen())...)
}

// endForGood stops a sandbox that is being deleted. Where its machine does not answer, what
// runs there is left to it, until clearGone finds that it does.
func (e *Engine) endForGood(ctx context.Context, p *place) error {
	err := e.stop(ctx, p)
	if err != nil && p.far() && errors.Is(err, driver.ErrUnreachable) {
		p.note("its machine does not answer: what runs there goes on until the trash is emptied")
		return nil
	}
	return err
}

// staysFar says that the machine of a deleted sandbox did not remove its files.
func (p *place) staysFar(why error) string {
	return "what its machine keeps of the deleted " + p.kind() + " " + p.record.Name + " stays there until the next litterbox trash empty: " + why.Error()
}

// leaveGone takes a sandbox away whose machine does not answer: its directory waits
// with what has left the trash, for clearGone to ask again.
func (e *Engine) leaveGone(p *place, why error) error {
	if err := p.store.MoveTo(e.goneStore(), p.record.ID); err != nil {
		return err
	}
	p.note(p.staysFar(why))
	return p.store.Release(p.record.GitDir, p.record.Name, p.record.ID)
}

// gonePlace is a sandbox that has left the trash and whose files are in another
// machine; nil for one that has none there, as when the machine was removed.
func (e *Engine) gonePlace(id string) *place {
	record, err := e.goneStore().Sandbox(id)
	if err != nil {
		return nil // half of it is removed, and that comes last
	}
	p := e.place(record, nil, e.Drivers.Get(record.Driver))
	if p.driver == nil || !p.far() {
		return nil
	}
	p.store, p.dir = e.goneStore(), e.goneStore().SandboxDir(id)
	return p
}

func (p *place) forgetGone(ctx context.Context) error {
	carrier, lists := p.driver.(driver.Carrier)
	if !lists {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gonePatience)
	defer cancel()
	return carrier.Forget(ctx, p.lastLease())
}

// sayGone is clearGone for commands: what stays is a note.
func (e *Engine) sayGone(ctx context.Context) error {
	stays, err := e.clearGone(ctx)
	e.say(stays)
	return err
}

// fixGone is clearGone for doctor: what stays is an error.
func (e *Engine) fixGone(ctx context.Context) error {
	stays, err := e.clearGone(ctx)
	if len(stays) > 0 {
		err = errors.Join(err, fault.New(fault.Unavailable, "%s", strings.Join(stays, "; ")))
	}
	return err
}

// trashedFar lists the deleted sandboxes whose files a driver keeps, by their driver.
func (e *Engine) trashedFar() (map[string][]*sandbox.Sandbox, error) {
	records, _, err := e.Store.Trash().Sandboxes()
	if err != nil {
		return nil, err
	}
	kept := map[string][]*sandbox.Sandbox{}
	for _, record := range records {
		kept[record.Driver] = append(kept[record.Driver], record)
	}
	return kept, nil
}

// keptFar reports whether the trash has a sandbox whose files are in another machine.
func (e *Engine) keptFar(id string) bool {
	record, err := e.Store.Trash().Sandbox(id)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // an unreadable one may be
	}
	d := e.Drivers.Get(record.Driver)
	return d != nil && e.place(record, nil, d).far()
}

// namesOf are the names of sandboxes, in their order.
func namesOf(records []*sandbox.Sandbox) (names []string) {
	for _, record := range records {
		names = append(names, record.Name)
	}
	return names
}
