package branch

import (
	"context"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// mergeMessage gives the arguments by which git merge, told an object id,
// writes the message that it would write for the branch: "Merge branch 'fix'",
// as the user's configuration has it. A message of the user's own, a squash
// and a fast-forward need none.
func (r *Repository) mergeMessage(ctx context.Context, flags MergeFlags, target MergeTarget, s Streams) ([]string, error) {
	commits, err := r.makesCommit(ctx, flags, target)
	if err != nil || flags.message || flags.squash || !commits {
		return nil, err
	}
	c := r.checkout(append([]string{"fmt-merge-msg", "--no-log"}, flags.into...)...)
	c.stdin = strings.NewReader(target.Commit + "\t\tbranch '" + target.Branch + "' of .\n")
	message, err := c.output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot write the message of the merge")
	}
	args := []string{"-m", strings.TrimRight(string(message), "\n")}
	if !flags.edit && opensEditor(s) {
		args = append(args, "--edit") // -m alone takes the editor away
	}
	return args, nil
}

// makesCommit reports whether the merge makes a commit of its own.
func (r *Repository) makesCommit(ctx context.Context, flags MergeFlags, target MergeTarget) (bool, error) {
	if target.NeedsCommit || flags.makes {
		return true, nil
	}
	s, err := r.allSettings(ctx)
	if err != nil {
		return false, err
	}
	for _, flag := range flags.content {
		switch flag {
		case "--ff", "--ff-only":
			return false, nil
		case "--strategy=ours", "--strategy=subtree": // git never forwards for these
			return true, nil
		}
	}
	ref, err := r.headRef(ctx)
	own := strings.Fields(s.of("branch." + strings.TrimPrefix(ref, heads) + ".mergeoptions"))
	switch strings.ToLower(s.of("merge.ff")) {
	case "false", "no", "off", "0":
		return !slices.Contains(own, "--ff"), err
	}
	return slices.Contains(own, "--no-ff"), err
}

// opensEditor reports whether git merge would open an editor by itself
// (git-merge(1), GIT_MERGE_AUTOEDIT).
func opensEditor(s Streams) bool {
	switch strings.ToLower(os.Getenv("GIT_MERGE_AUTOEDIT")) {
	case "":
	case "true", "yes", "on", "1":
		return true
	default:
		return false
	}
	in, isFile := s.Stdin.(*os.File)
	out, isFile2 := s.Stdout.(*os.File)
	if !isFile || !isFile2 || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return false
	}
	a, err := in.Stat()
	b, err2 := out.Stat()
	return err == nil && err2 == nil && os.SameFile(a, b)
}
