package branch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// RenewRequest asks to bring a branch to a newer base.
type RenewRequest struct {
	ID       string // the sandbox's; names the history refs
	Branch   string
	Onto     string // commit
	Rebase   bool   // replay its commits on top of Onto instead of merging
	Markers  bool   // a merge with conflicts leaves their markers in the files
	Author   git.Signature
	Trailers []Trailer
	Message  func(conflicts []string) (subject, body string) // of a merge
	Progress func(done, total int)                           // may be nil
}

// Renewed is a branch on a newer base.
type Renewed struct {
	Before, Tip string
	FastForward bool              // it had no commits of its own
	Conflicts   []string          // paths that hold conflict markers
	Replayed    map[string]string // by a rebase: the commits before, and the new commit of each
	History     string            // ref that keeps the commits before a rebase
}

// ConflictError keeps a branch from its new base.
type ConflictError struct {
	Paths   []string
	Subject string // of the commit that a rebase stopped at
}

func (e *ConflictError) Error() string {
	what := fmt.Sprintf("both sides changed %s", strings.Join(quoted(e.Paths, 3), ", "))
	if e.Subject != "" {
		what += fmt.Sprintf(" (at the commit %q)", e.Subject)
	}
	return what
}

// quoted returns the first paths, and how many more there are.
func quoted(paths []string, most int) []string {
	var shown []string
	for _, path := range paths[:min(most, len(paths))] {
		shown = append(shown, fmt.Sprintf("%q", path))
	}
	if more := len(paths) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return shown
}

// Renew moves a branch to a merge of its tip and Onto, or to its commits on top of
// Onto. Nothing changes on an error; conflicts are a [ConflictError] of kind Conflict.
// The caller holds the sandbox's lock and knows that the tip does not contain Onto.
func Renew(ctx context.Context, r *git.Repository, q RenewRequest) (Renewed, error) {
	if err := errors.Join(git.CheckRef(q.Branch), git.CheckRef(q.ID), git.CheckOids(q.Onto)); err != nil {
		return Renewed{}, err
	}
	tip, err := r.Tip(ctx, q.Branch)
	if err != nil {
		return Renewed{}, err
	}
	done := Renewed{Before: tip}
	if done.FastForward, err = r.IsAncestor(ctx, tip, q.Onto); err != nil {
		return Renewed{}, err
	}
	var refs []string
	switch {
	case done.FastForward:
		done.Tip = q.Onto
	case q.Rebase:
		if err := replay(ctx, r, q, &done); err != nil {
			return Renewed{}, err
		}
		n, err := nextHistory(ctx, r, q.ID)
		if err != nil {
			return Renewed{}, err
		}
		done.History = fmt.Sprintf("%s%s/%d", git.HistoryRefs, q.ID, n)
		refs = append(refs, "create "+done.History+"\x00"+tip+"\x00")
	default:
		merged, err := r.MergeTrees(ctx, tip, q.Onto)
		if err != nil {
			return Renewed{}, err
		}
		if len(merged.Conflicts) > 0 && !q.Markers {
			return Renewed{}, fault.Wrap(fault.Conflict, &ConflictError{Paths: merged.Conflicts}, "cannot merge")
		}
		done.Conflicts = merged.Conflicts
		subject, body := q.Message(merged.Conflicts)
		message := commitMessage(redact.Secrets{}, subject, body, q.Trailers)
		done.Tip, err = r.StoreCommit(ctx, git.FormatCommit(merged.Tree, []string{tip, q.Onto}, q.Author, q.Author, message))
		if err != nil {
			return Renewed{}, err
		}
	}
	refs = append(refs, "update "+git.Heads+q.Branch+"\x00"+done.Tip+"\x00"+tip+"\x00")
	return done, r.UpdateRefs(ctx, "cannot move the branch", q.Branch, refs...)
}

// replay makes the branch's own commits again on top of Onto, each with its
// author, dates and message. It leaves out one that changes nothing there.
func replay(ctx context.Context, r *git.Repository, q RenewRequest, done *Renewed) error {
	out, err := r.Command("rev-list", "--reverse", "--first-parent", done.Before, "^"+q.Onto, "--").Output(ctx)
	if err != nil {
		return fault.Wrap("", err, "cannot list the commits of the branch %q", q.Branch)
	}
	_, tree, err := r.Resolve(ctx, q.Onto)
	if err != nil {
		return err
	}
	contents := r.Contents(ctx)
	defer contents.Close()
	at := q.Onto
	done.Replayed = map[string]string{}
	oids := strings.Fields(string(out))
	for n, oid := range oids {
		if q.Progress != nil {
			q.Progress(n, len(oids))
		}
		_, object, err := contents.Content(oid, git.MaxMessage+1<<20)
		if err != nil {
			return err
		}
		c, err := parseCommit(oid, object)
		if err != nil {
			return err
		}
		next, err := pick(ctx, r, c, tree)
		var conflict *ConflictError
		if errors.As(err, &conflict) {
			conflict.Subject = firstLineOf(c.Message)
			return fault.Wrap(fault.Conflict, conflict, "cannot rebase")
		}
		if err != nil {
			return err
		}
		if next != tree {
			if at, err = r.StoreCommit(ctx, rewritten(object, next, at)); err != nil {
				return err
			}
			tree = next
		}
		done.Replayed[oid] = at
	}
	done.Tip = at
	return nil
}

// pick returns the tree that results from a commit's changes on another tree.
// merge-tree looks for the common ancestor itself (--merge-base came with git
// 2.40), so the other tree is given the commit's own parent.
func pick(ctx context.Context, r *git.Repository, c AgentCommit, onto string) (string, error) {
	parent := c.ParentTree // a commit still
	_, before, err := r.Resolve(ctx, parent)
	if err != nil {
		return "", err
	}
	if before == onto {
		return c.Tree, nil
	}
	beside, err := r.StoreCommit(ctx, git.FormatCommit(onto, []string{parent}, c.Committer, c.Committer, "litterbox update\n"))
	if err != nil {
		return "", err
	}
	merged, err := r.MergeTrees(ctx, beside, c.Oid)
	if err != nil {
		return "", err
	}
	if len(merged.Conflicts) > 0 {
		return "", &ConflictError{Paths: merged.Conflicts}
	}
	return merged.Tree, nil
}

// rewritten returns a commit object with another tree and parent. Signatures
// would not hold for it.
func rewritten(object []byte, tree, parent string) string {
	header, message, _ := strings.Cut(string(object), "\n\n")
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\nparent %s\n", tree, parent)
	for line := range strings.SplitSeq(header, "\n") {
		switch key, _, _ := strings.Cut(line, " "); key {
		case "author", "committer", "encoding":
			b.WriteString(line + "\n")
		}
	}
	return b.String() + "\n" + message
}

func firstLineOf(message []byte) string {
	line, _, _ := strings.Cut(string(message), "\n")
	return line
}
