package branch

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// outFile lists, in the quarantine, the branches of the git inside that were
// taken by name.
const outFile = "branches"

// out is a branch as it was when it was taken.
type out struct {
	Commit string `json:"commit"` // inside
	As     string `json:"as"`     // the host's branch
	Tip    string `json:"tip"`    // its commit there; another one where the history inside has merges
}

// out are the branches that were taken, by their names inside.
func (q Quarantine) out() (map[string]out, error) {
	all := map[string]out{}
	content, err := os.ReadFile(filepath.Join(q.Dir, outFile))
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read which branches were taken")
	}
	return all, nil
}

// noteOut records that a branch was taken.
func (q Quarantine) noteOut(name string, now out) error {
	all, err := q.out()
	if err != nil {
		all = map[string]out{} // without it the branches are listed as before
	}
	all[name] = now
	content, err := json.Marshal(all)
	path := filepath.Join(q.Dir, outFile)
	if err == nil {
		err = os.WriteFile(path+".new", content, 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot record that a branch was taken")
	}
	return nil
}

// cameOut returns the host's branch that a branch inside was taken as, or ""
// where it has to be taken (again): it has moved inside, or its commits are on no
// branch of the host any more.
func (in intake) cameOut(ctx context.Context, name, commit string, taken map[string]out) (string, error) {
	found, err := in.r.LookUp(ctx, git.Heads+name)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "cannot look up the host's branches")
	}
	if found[0].Oid == commit {
		return name, nil
	}
	was, ok := taken[name]
	if !ok || was.Commit != commit || git.CheckOids(was.Tip) != nil {
		return "", nil
	}
	line, err := in.r.Command("for-each-ref", "--count=1", "--format=%(refname)", "--contains="+was.Tip, git.Heads).Line(ctx)
	switch {
	case err != nil && git.ExitCode(err) < 0:
		return "", fault.Wrap(fault.Internal, err, "cannot look up the host's branches")
	case err != nil || strings.TrimSpace(line) == "": // an error: the host has dropped the commit
		return "", nil
	}
	return was.As, nil
}
