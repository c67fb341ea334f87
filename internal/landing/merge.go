package landing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Streams are the standard streams of the user's own git.
type Streams struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// MergeOptions is how the user's own git runs a merge.
type MergeOptions struct {
	HooksOff bool
	NoEdit   bool // the prepared message is taken as it is; no editor opens
	Streams
}

// MergeTarget is the subject of a merge: a commit, and the branch that messages
// call it by. The name is for reading only: a tag of the same name would be
// merged in the branch's place.
type MergeTarget struct {
	Verb   string // that errors use: merge or apply
	Branch string
	Commit string
	// NeedsCommit says that the checkout has moved on since, so that a merge
	// makes a commit, with a message.
	NeedsCommit bool
}

// RunMerge is `git merge` in the user's checkout, with the user's whole
// configuration and environment: it is the user's own git, on the user's own
// files. args go to git in order; --abort, --continue and --quit take no
// commit. It returns git's exit code; an error means that git did not run.
func RunMerge(ctx context.Context, r *git.Repository, args []string, target MergeTarget, o MergeOptions) (int, error) {
	if err := errors.Join(git.CheckRef(target.Branch), git.CheckOids(target.Commit)); err != nil {
		return 0, err
	}
	c := git.Command{Dir: r.Top, Plain: true, Args: append([]string{"merge"}, args...)}
	if o.HooksOff {
		off, err := hooksOff(ctx, r)
		if err != nil {
			return 0, err
		}
		c.Config = off
	}
	if o.NoEdit {
		c.Env = append(c.Env, "GIT_EDITOR=:")
	}
	if caller.Of(ctx).Get("GIT_REFLOG_ACTION") == "" {
		c.Env = append(c.Env, "GIT_REFLOG_ACTION="+strings.Join(append([]string{"merge"}, append(args, target.Branch)...), " "))
	}
	if flags := ReadMergeFlags(args); !flags.Resumes && !flags.Leaves {
		message, err := mergeMessage(ctx, r, flags, target, o.Streams)
		if err != nil {
			return 0, err
		}
		c.Args = append(c.Args, message...)
		c.Args = append(c.Args, target.Commit)
	}
	return interactive(ctx, c, o.Streams)
}

// hooksOff is configuration that keeps git from running hooks: those of a
// directory and those that the configuration of a newer git names.
func hooksOff(ctx context.Context, r *git.Repository) ([]string, error) {
	off := []string{"core.hooksPath=/dev/null"}
	s, err := r.AllSettings(ctx)
	if err != nil {
		return nil, err
	}
	for key := range s.Values {
		if name, ok := strings.CutSuffix(key, ".command"); ok && strings.HasPrefix(name, "hook.") {
			off = append(off, name+".enabled=false")
		}
	}
	switch strings.ToLower(s.Values["core.fsmonitor"]) {
	case "", "true", "yes", "on", "1", "false", "no", "off", "0":
	default: // a program
		off = append(off, "core.fsmonitor=false")
	}
	slices.Sort(off)
	return off, nil
}

// interactive runs git on the user's streams and returns its exit code.
func interactive(ctx context.Context, c git.Command, s Streams) (int, error) {
	cmd, err := c.Cmd(ctx)
	if err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, s.Stdout, s.Stderr
	var exit *exec.ExitError
	var known *fault.Error
	wait, err := c.Start(cmd)
	if err == nil {
		err = wait()
	}
	switch {
	case err == nil:
		return 0, nil
	case ctx.Err() != nil:
		return 0, fault.Wrap(fault.Canceled, ctx.Err(), "cannot finish git %s", c.Verb())
	case errors.As(err, &known):
		return 0, known
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	default:
		return 0, fault.Wrap(fault.Internal, err, "cannot run git %s", c.Verb())
	}
}

// Diff is `git diff` between two commits, with the user's flags, pager and
// colours, but no program that attributes or configuration choose for content
// (diff.external, textconv). dir is where the user stands, so that relative
// pathspecs work as typed. It returns git's exit code.
func Diff(ctx context.Context, r *git.Repository, dir, from, to string, args []string, s Streams) (int, error) {
	if !git.IsOid(from) || !git.IsOid(to) {
		return 0, fault.New(fault.Invalid, "cannot compare %q with %q: not object ids", from, to)
	}
	c := git.Command{Dir: dir, Plain: true, Tight: git.Bounds{Memory: git.GitMemory}, Args: []string{"diff", "--no-ext-diff", "--no-textconv"}}
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	c.Args = append(c.Args, args[:at]...)
	c.Args = append(c.Args, from, to)
	c.Args = append(c.Args, args[at:]...)
	if at == len(args) {
		c.Args = append(c.Args, "--") // a file may be called like an object id
	}
	for _, a := range args[:at] {
		if a == "--ext-diff" || a == "--textconv" || a == "--no-index" {
			return 0, fault.New(fault.Denied, "cannot use %s: it would run programs that the content chooses", a)
		}
	}
	return interactive(ctx, c, s)
}

// Landed reports whether tip has really arrived in HEAD of the user's checkout:
// it is an ancestor, or merging it again would change nothing (a squash that was
// committed). A merely staged merge has not landed.
func Landed(ctx context.Context, r *git.Repository, tip string) (bool, error) {
	head, tree, err := headNow(ctx, r)
	if err != nil {
		return false, err
	}
	if ok, err := r.IsAncestor(ctx, tip, head); ok || err != nil {
		return ok, err
	}
	// git 2.38; in 2.39 the merge base is searched by itself.
	merged, err := r.Command("merge-tree", "--write-tree", "--no-messages", head, tip).Line(ctx)
	switch git.ExitCode(err) {
	case 0, -1:
		if err != nil {
			return false, err
		}
	case 1: // conflicts: it would surely change something
		return false, nil
	default: // an older git
		_, theirs, err := r.Resolve(ctx, tip)
		if err != nil {
			return false, err
		}
		merged = theirs
	}
	if merged != tree {
		return false, nil
	}
	// Equal to HEAD's tree; but a squash that is staged only comes with changes
	// in the index.
	_, err = r.InCheckout("diff-index", "--cached", "--quiet", head, "--").Output(ctx)
	if git.ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// headNow reads HEAD again: a merge has moved it since Open.
func headNow(ctx context.Context, r *git.Repository) (commit, tree string, err error) {
	return r.Resolve(ctx, "HEAD")
}

// InProgress is a merge that waits for the user.
type InProgress struct {
	Head     string   // the commit being merged; empty when there is no merge
	Unmerged []string // paths with conflicts
}

// MergeInProgress reads the state of the user's checkout.
func MergeInProgress(ctx context.Context, r *git.Repository) (InProgress, error) {
	content, err := os.ReadFile(filepath.Join(r.GitDir, "MERGE_HEAD"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return InProgress{}, fault.Wrap(fault.Internal, err, "cannot read the state of the merge")
	}
	var p InProgress
	p.Head, _, _ = strings.Cut(strings.TrimSpace(string(content)), "\n")
	out, err := r.InCheckout("diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff").Output(ctx)
	if err != nil {
		return InProgress{}, fault.Wrap("", err, "cannot list the conflicts")
	}
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) > 0 && !slices.Contains(p.Unmerged, string(name)) {
			p.Unmerged = append(p.Unmerged, string(name))
		}
	}
	return p, nil
}

// Unmerged counts the commits of a branch that head does not contain.
func Unmerged(ctx context.Context, r *git.Repository, branch, head string) (int, error) {
	if err := errors.Join(git.CheckRef(branch), git.CheckOids(head)); err != nil {
		return 0, err
	}
	line, err := r.Command("rev-list", "--count", git.Heads+branch, "^"+head, "--").Line(ctx)
	if err != nil {
		return 0, fault.Wrap("", err, "cannot count the commits of %q", branch)
	}
	n, err := strconv.Atoi(line)
	if err != nil {
		return 0, fault.Wrap(fault.Internal, err, "cannot count the commits of %q", branch)
	}
	return n, nil
}
