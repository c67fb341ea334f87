package branch

import (
	"context"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// trashStamp is the suffix of the refs of deleted sandboxes. It has
// nanoseconds: two deletions in one second are possible.
const trashStamp = "20060102-150405.000000000"

// TrashRef returns the ref that keeps the tip of a sandbox deleted at that time.
func TrashRef(name string, at time.Time) string {
	return git.TrashRefs + name + "-" + at.UTC().Format(trashStamp)
}

// Trashed is the last commit of a deleted sandbox.
type Trashed struct {
	Ref, Name, Tip string
	At             time.Time
}

// Entry returns the last part of the ref: the name with the time.
func (t Trashed) Entry() string { return strings.TrimPrefix(t.Ref, git.TrashRefs) }

// TrashedTips lists the refs in refs/litterbox/trash/, oldest first for each
// name. Refs of another form are not ours and are left out.
func TrashedTips(ctx context.Context, r *git.Repository) ([]Trashed, error) {
	out, err := r.Command("for-each-ref", "--format=%(objectname) %(refname)", git.TrashRefs).Output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list the trash of %q", r.CommonDir)
	}
	var all []Trashed
	for line := range strings.Lines(string(out)) {
		tip, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		entry := strings.TrimPrefix(ref, git.TrashRefs)
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
func Untrash(ctx context.Context, r *git.Repository, t Trashed, branch string) error {
	if err := git.CheckRef(branch); err != nil {
		return err
	}
	return r.UpdateRefs(ctx, "cannot restore the branch", branch,
		"create "+git.Heads+branch+"\x00"+t.Tip+"\x00", "delete "+t.Ref+"\x00"+t.Tip+"\x00")
}

// DropTrash drops the ref that keeps the last commit of a deleted sandbox.
func DropTrash(ctx context.Context, r *git.Repository, t Trashed) error {
	return r.UpdateRefs(ctx, "cannot empty the trash of", t.Name, "delete "+t.Ref+"\x00"+t.Tip+"\x00")
}
