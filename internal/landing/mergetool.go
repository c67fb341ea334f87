package landing

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Solution is how the user has solved the conflicts of a merge, beside the
// checkout.
type Solution struct {
	conflicts string  // the output of git ls-files --unmerged for the merge
	entries   []entry // of the paths that had conflicts; mode 0: there is none
	stage     func(...string) git.Command
}

// Solve does the merge of tip into head in scratch, as [Rehearse] does, and runs
// `git mergetool` there, with toolArgs and the tool of the user's own
// configuration. Only the files with conflicts are there; no attribute of their
// content chooses a program, and the checkout stays as it is. It returns the
// solution, or the paths that still have conflicts. scratch is replaced, and the
// caller removes it once the solution is in place.
func Solve(ctx context.Context, r *git.Repository, scratch, head, tip string, mergeArgs, toolArgs []string, s Streams) (*Solution, []string, error) {
	if err := git.CheckOids(head, tip); err != nil {
		return nil, nil, err
	}
	copies, err := makeStage(ctx, r, scratch, head)
	if err != nil {
		return nil, nil, err
	}
	if _, err := mergeInStage(ctx, r, copies, head, tip, ReadMergeFlags(mergeArgs)); err != nil {
		return nil, nil, err
	}
	solved := &Solution{stage: copies}
	if solved.conflicts, err = unmerged(ctx, copies); err != nil {
		return nil, nil, err
	}
	tool := copies(append([]string{"mergetool"}, toolArgs...)...)
	tool.Plain, tool.Env = true, append(tool.Env, "GIT_DIR="+scratch)
	// Added files are outside the empty work tree that the stage is told about.
	tool.Config = append(tool.Config, "core.sparseCheckout=false")
	if _, err := interactive(ctx, tool, s); err != nil {
		return nil, nil, err
	}
	// The tool's exit status is ignored: the remaining conflicts tell everything.
	left, err := unmerged(ctx, copies)
	if err != nil || left != "" {
		return nil, unmergedPaths(left), err
	}
	out, err := copies("ls-files", "--stage", "-z").Output(ctx)
	if err != nil {
		return nil, nil, fault.Wrap("", err, "cannot read how the conflicts were resolved")
	}
	found := map[string]entry{}
	for record := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		about, path, _ := strings.Cut(string(record), "\t")
		if f := strings.Fields(about); len(f) == 3 {
			found[path] = entry{git.Octal(f[0]), f[1], path}
		}
	}
	for _, path := range unmergedPaths(solved.conflicts) {
		one, ok := found[path]
		if !ok {
			one = entry{oid: head, path: path} // of an id only the length counts
		}
		solved.entries = append(solved.entries, one)
	}
	return solved, nil, nil
}

func unmerged(ctx context.Context, in func(...string) git.Command) (string, error) {
	out, err := in("ls-files", "--unmerged", "-z").Output(ctx)
	if err != nil {
		return "", fault.Wrap("", err, "cannot list the conflicts")
	}
	return string(out), nil
}

// unmergedPaths reads the paths of git ls-files --unmerged -z, each once.
func unmergedPaths(listing string) (paths []string) {
	for record := range strings.SplitSeq(strings.TrimSuffix(listing, "\x00"), "\x00") {
		if _, path, ok := strings.Cut(record, "\t"); ok {
			paths = append(paths, path)
		}
	}
	return slices.Compact(paths)
}

// PutInPlace solves the conflicts of the merge that waits in the checkout.
// They must be those that were solved, entry by entry.
func (s *Solution) PutInPlace(ctx context.Context, r *git.Repository) error {
	now, err := unmerged(ctx, r.InCheckout)
	if err != nil {
		return err
	}
	if now != s.conflicts {
		return fault.New(fault.Conflict, "your checkout changed meanwhile, and now has other conflicts")
	}
	var gone, there, index strings.Builder
	for _, one := range s.entries {
		if one.mode == 0 {
			gone.WriteString(one.path + "\x00")
			continue
		}
		if one.mode != git.ModeGitlink {
			if err := s.take(ctx, r, one.oid); err != nil {
				return err
			}
			there.WriteString(one.path + "\x00")
		}
		// Remove the sides first, then add the solution.
		index.WriteString(entry{oid: one.oid, path: one.path}.indexInfo() + one.indexInfo())
	}
	for _, step := range []struct {
		input string
		args  []string
	}{
		{gone.String(), []string{"rm", "--quiet", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"}},
		{index.String(), []string{"update-index", "-z", "--index-info"}},
		{there.String(), []string{"checkout-index", "--force", "--index", "-z", "--stdin"}},
	} {
		if step.input == "" {
			continue
		}
		c := r.InCheckout(step.args...)
		c.Stdin, c.Env = strings.NewReader(step.input), append(c.Env, "GIT_LITERAL_PATHSPECS=1")
		if _, err := c.Output(ctx); err != nil {
			return fault.Wrap("", err, "cannot write the resolved files to your checkout")
		}
	}
	return nil
}

// take copies a blob of the stage to the repository.
func (s *Solution) take(ctx context.Context, r *git.Repository, oid string) error {
	in, out := io.Pipe()
	read := s.stage("cat-file", "blob", oid)
	read.Stdout = out
	done := make(chan error, 1)
	go func() {
		_, err := read.Output(ctx)
		out.CloseWithError(err)
		done <- err
	}()
	write := r.Command("hash-object", "-w", "--stdin")
	write.Stdin = in
	got, err := write.Line(ctx)
	in.Close() // so that the other side ends in any case
	if failed := <-done; err == nil {
		err = failed
	}
	if err == nil && got != oid {
		err = fault.New(fault.Internal, "git wrote %s instead of %s", got, oid)
	}
	if err != nil {
		return fault.Wrap("", err, "cannot keep a resolved conflict")
	}
	return nil
}
