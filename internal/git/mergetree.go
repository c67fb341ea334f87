package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Merged is the tree that a merge of two commits makes.
type Merged struct {
	Tree      string   // with conflict markers where there are Conflicts
	Conflicts []string // paths, sorted
}

// MergeTrees merges theirs into ours without a work tree, as git merge does. It
// fails with Unsupported where git is older than 2.38.
func (r *Repository) MergeTrees(ctx context.Context, ours, theirs string) (Merged, error) {
	if err := errors.Join(CheckOids(ours, theirs)); err != nil {
		return Merged{}, err
	}
	out, err := r.Command("merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", ours, theirs).Output(ctx)
	switch code := ExitCode(err); {
	case err == nil || code == 1:
	case code == 129: // its usage
		return Merged{}, fault.New(fault.Unsupported, "cannot merge %s and %s without a checkout: this git is too old for that", ours, theirs).
			WithHint("install git 2.38 or newer")
	default:
		return Merged{}, fault.Wrap("", err, "cannot merge %s and %s", ours, theirs)
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if !IsOid(fields[0]) {
		return Merged{}, fault.New(fault.Internal, "cannot read what git merge-tree printed")
	}
	return Merged{Tree: fields[0], Conflicts: fields[1:]}, nil
}

// StoreCommit writes a commit object, which no ref names yet.
func (r *Repository) StoreCommit(ctx context.Context, object string) (string, error) {
	c := r.Command("hash-object", "-t", "commit", "-w", "--stdin")
	c.Stdin = strings.NewReader(object)
	oid, err := c.Line(ctx)
	if err != nil {
		return "", fault.Wrap("", err, "cannot write a commit")
	}
	return oid, nil
}

// FormatCommit returns a commit object.
func FormatCommit(tree string, parents []string, author, committer Signature, message string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, parent := range parents {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", author.Line(), committer.Line(), message)
	return b.String()
}

// CountBetween returns how many commits newer reaches and older does not.
func (r *Repository) CountBetween(ctx context.Context, older, newer string) (int, error) {
	if err := CheckOids(older, newer); err != nil || older == newer {
		return 0, err
	}
	said, err := r.Command("rev-list", "--count", newer, "^"+older, "--").Line(ctx)
	if err != nil {
		return 0, fault.Wrap("", err, "cannot count the commits from %s to %s", older, newer)
	}
	n := 0
	_, err = fmt.Sscanf(said, "%d", &n)
	return n, err
}

// GlanceTip returns the commit of a branch, or of a branch of a remote, if a look
// at git's files shows it; "" where only git itself can tell. It starts no process.
func (r *Repository) GlanceTip(branch string) string {
	if CheckRef(branch) != nil {
		return ""
	}
	for _, prefix := range []string{Heads, "refs/remotes/"} {
		if content, err := os.ReadFile(filepath.Join(r.CommonDir, prefix+branch)); err == nil {
			return oidOrNone(strings.TrimSpace(string(content)))
		}
	}
	packed, err := os.ReadFile(filepath.Join(r.CommonDir, "packed-refs"))
	if err != nil {
		return ""
	}
	for _, prefix := range []string{Heads, "refs/remotes/"} {
		if before, _, found := strings.Cut(string(packed), " "+prefix+branch+"\n"); found {
			return oidOrNone(before[strings.LastIndexByte(before, '\n')+1:])
		}
	}
	return ""
}

func oidOrNone(text string) string {
	if IsOid(text) {
		return text
	}
	return ""
}
