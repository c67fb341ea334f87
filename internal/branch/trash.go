package branch

import (
	"context"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// trashStamp is how the refs of deleted sandboxes end. Nanoseconds: two
// deletions in one second are possible.
const trashStamp = "20060102-150405.000000000"

// TrashRef is where the tip of a sandbox that was deleted at that time stays.
func TrashRef(name string, at time.Time) string {
	return trashRefs + name + "-" + at.UTC().Format(trashStamp)
}

// Trashed is the last commit of a deleted sandbox.
type Trashed struct {
	Ref, Name, Tip string
	At             time.Time
}

// Entry is the last part of the ref: the name with the time.
func (t Trashed) Entry() string { return strings.TrimPrefix(t.Ref, trashRefs) }

// TrashedTips lists what refs/litterbox/trash/ keeps, oldest first of each name.
// Refs of another form are not ours and are left out.
func (r *Repository) TrashedTips(ctx context.Context) ([]Trashed, error) {
	out, err := r.git("for-each-ref", "--format=%(objectname) %(refname)", trashRefs).output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list the trash of %q", r.CommonDir)
	}
	var all []Trashed
	for line := range strings.Lines(string(out)) {
		tip, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		entry := strings.TrimPrefix(ref, trashRefs)
		at := len(entry) - len(trashStamp)
		if at < 2 || entry[at-1] != '-' {
			continue
		}
		when, err := time.Parse(trashStamp, entry[at:])
		if err != nil {
			continue
		}
		all = append(all, Trashed{Ref: ref, Name: entry[:at-1], Tip: tip, At: when})
	}
	return all, nil
}

// Untrash makes the branch at the tip that a ref of the trash keeps, and drops
// that ref, in one transaction. Nothing is ever replaced: AlreadyExists.
func (r *Repository) Untrash(ctx context.Context, t Trashed, branch string) error {
	if err := checkRef(branch); err != nil {
		return err
	}
	return r.updateRefs(ctx, "cannot restore the branch", branch,
		"create "+heads+branch+"\x00"+t.Tip+"\x00", "delete "+t.Ref+"\x00"+t.Tip+"\x00")
}

// DropTrash lets the last commit of a deleted sandbox go.
func (r *Repository) DropTrash(ctx context.Context, t Trashed) error {
	return r.updateRefs(ctx, "cannot empty the trash of", t.Name, "delete "+t.Ref+"\x00"+t.Tip+"\x00")
}
