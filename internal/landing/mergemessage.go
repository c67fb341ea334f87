package landing

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"golang.org/x/term"
)

// mergeMessage gives the arguments that make git merge, given an object id, write
// the message that it would write for the branch: "Merge branch 'fix'", as the
// user's configuration has it. A message of the user's own, a squash and a
// fast-forward need none.
func mergeMessage(ctx context.Context, r *git.Repository, flags MergeFlags, target MergeTarget, s Streams) ([]string, error) {
	commits, err := makesCommit(ctx, r, flags, target)
	if err != nil || flags.message || flags.squash || !commits {
		return nil, err
	}
	c := r.InCheckout(append([]string{"fmt-merge-msg", "--no-log"}, flags.into...)...)
	c.Stdin = strings.NewReader(target.Commit + "\t\tbranch '" + target.Branch + "' of .\n")
	message, err := c.Output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot write the message of the merge")
	}
	args := []string{"-m", strings.TrimRight(string(message), "\n")}
	if !flags.edit && opensEditor(ctx, s) {
		args = append(args, "--edit") // -m alone opens no editor
	}
	return args, nil
}

// makesCommit reports whether the merge makes a commit of its own.
func makesCommit(ctx context.Context, r *git.Repository, flags MergeFlags, target MergeTarget) (bool, error) {
	if target.NeedsCommit || flags.makes {
		return true, nil
	}
	s, err := r.AllSettings(ctx)
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
	ref, err := headRef(ctx, r)
	own := strings.Fields(s.Of("branch." + strings.TrimPrefix(ref, git.Heads) + ".mergeoptions"))
	switch strings.ToLower(s.Of("merge.ff")) {
	case "false", "no", "off", "0":
		return !slices.Contains(own, "--ff"), err
	}
	return slices.Contains(own, "--no-ff"), err
}

// opensEditor reports whether git merge would open an editor by itself
// (git-merge(1), GIT_MERGE_AUTOEDIT).
func opensEditor(ctx context.Context, s Streams) bool {
	switch strings.ToLower(caller.Of(ctx).Get("GIT_MERGE_AUTOEDIT")) {
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
