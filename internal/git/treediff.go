package git

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// TreeDiff is one line of `git diff-tree --raw -z`.
type TreeDiff struct {
	Path             string
	OldMode, NewMode uint32
	OldOid, NewOid   string // hex
	Status           byte
}

// ParseRaw reads the output of diff-tree -r -z --raw --no-abbrev --no-renames.
func ParseRaw(out []byte) ([]TreeDiff, error) {
	var found []TreeDiff
	for len(out) > 0 {
		meta, rest, ok := bytes.Cut(out, []byte{0})
		path, rest, ok2 := bytes.Cut(rest, []byte{0})
		f := strings.Fields(string(meta))
		if !ok || !ok2 || len(f) != 5 || f[0] == "" || f[0][0] != ':' || f[4] == "" {
			return nil, fault.New(fault.Internal, "cannot read what git diff-tree printed")
		}
		d := TreeDiff{Path: string(path), OldOid: f[2], NewOid: f[3], Status: f[4][0]}
		d.OldMode, d.NewMode = Octal(f[0][1:]), Octal(f[1])
		found = append(found, d)
		out = rest
	}
	return found, nil
}

// EmptyTree returns the tree without entries, which git knows without having it.
func (r *Repository) EmptyTree() string {
	h := NewHash(r.ObjectFormat)
	h.Write([]byte("tree 0\x00"))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// DiffTrees compares two trees or commits, given as object ids.
func (r *Repository) DiffTrees(ctx context.Context, from, to string) ([]TreeDiff, error) {
	return diffTrees(ctx, r.Command(), from, to)
}

func diffTrees(ctx context.Context, c Command, from, to string) ([]TreeDiff, error) {
	if !IsOid(from) || !IsOid(to) {
		return nil, fault.New(fault.Invalid, "cannot compare %q with %q: not object ids", from, to)
	}
	c.Args = []string{"diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff",
		"--ignore-submodules=none", from, to, "--"}
	out, err := c.Output(ctx)
	if err != nil {
		return nil, err
	}
	return ParseRaw(out)
}
