package branch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Drop gives up what was received, if its commits are already on the branch. A
// collection may then remove the objects.
func (r *Received) Drop() { r.release() }

// PackBase packs into dir what onto reaches and from does not, and nothing
// else of the repository. The quarantine gets it too: the agent's next commits
// build on it. It returns the files for the git inside.
func PackBase(ctx context.Context, r *git.Repository, q Quarantine, dir, onto, from string) ([]string, error) {
	if err := git.CheckOids(onto, from); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot make %q", dir)
	}
	// git writes a pack beside its objects first and renames it, which does not
	// work across file systems; on the same one, dir may be named.
	c := r.Command("pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q")
	c.Trusted = true
	c.Stdin = strings.NewReader(onto + "\n^" + from + "\n^" + q.Base + "\n")
	pack := filepath.Join(dir, "new")
	f, err := os.OpenFile(pack, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot write %q", pack)
	}
	c.Stdout = f
	_, err = c.Output(ctx)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fault.Wrap("", err, "cannot pack the new base")
	}
	in := intake{r: r, q: q, c: git.Command{GitDir: q.Dir, Private: true}}
	if err := in.prepare(); err != nil {
		return nil, err
	}
	input, err := os.Open(pack)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read %q", pack)
	}
	defer input.Close()
	index := in.git("index-pack", "--stdin", "--threads=1")
	index.Trusted, index.Stdin = true, input
	said, err := index.Line(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot store the new base")
	}
	_, name, ok := strings.Cut(said, "\t")
	if !ok || !git.IsOid(name) {
		return nil, fault.New(fault.Internal, "cannot read what git index-pack printed")
	}
	stored := filepath.Join(q.Dir, "objects", "pack", "pack-"+name)
	return []string{stored + ".pack", stored + ".idx"}, nil
}
