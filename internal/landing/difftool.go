package landing

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// DiffTool is `git difftool` between two commits, with the tool of the user's own
// configuration. It gets read-only copies of the files that differ, in scratch,
// which is replaced and which the caller removes. The tool starts in a directory
// without files of the checkout, and no attribute of the content chooses a
// program for it. args are git's, with paths after "--", relative to dir. It
// returns git's exit code, and the submodules that were left out.
func DiffTool(ctx context.Context, r *git.Repository, scratch, dir, from, to string, args []string, s Streams) (code int, left []string, err error) {
	if !git.IsOid(from) || !git.IsOid(to) {
		return 0, nil, fault.New(fault.Invalid, "cannot compare %q with %q: not object ids", from, to)
	}
	flags, paths := args, []string(nil)
	if at := slices.Index(args, "--"); at >= 0 {
		flags, paths = args[:at], args[at+1:]
	}
	c := git.Command{Dir: dir, Args: []string{"diff", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", from, to, "--"}}
	c.Args = append(c.Args, paths...)
	out, err := c.Output(ctx)
	if err != nil {
		return 0, nil, fault.Wrap("", err, "cannot list what changes")
	}
	diffs, err := git.ParseRaw(out)
	if err != nil {
		return 0, nil, err
	}
	var before, after []entry
	for _, d := range diffs {
		if d.OldMode == git.ModeGitlink || d.NewMode == git.ModeGitlink {
			left = append(left, d.Path)
			continue
		}
		if d.OldMode != 0 {
			before = append(before, entry{d.OldMode, d.OldOid, d.Path})
		}
		if d.NewMode != 0 {
			after = append(after, entry{d.NewMode, d.NewOid, d.Path})
		}
	}
	if len(before)+len(after) == 0 {
		return 0, left, nil
	}
	copies, err := makeStage(ctx, r, scratch, from)
	if err != nil {
		return 0, left, err
	}
	own := copies("difftool")
	own.Plain, own.Env = true, append(own.Env, "GIT_DIR="+scratch)
	for _, side := range []struct {
		name    string
		entries []entry
	}{{"before", before}, {"after", after}} {
		if err := layOut(ctx, copies, scratch, side.name, side.entries); err != nil {
			return 0, left, err
		}
	}
	own.Args = append(own.Args, flags...)
	if wholeTrees(flags) {
		// git makes the two directories itself, of trees and not of files.
		for _, name := range []string{"before", "after"} {
			write := copies("write-tree")
			write.Env = append(write.Env, "GIT_INDEX_FILE="+indexOf(scratch, name))
			tree, err := write.Line(ctx)
			if err != nil {
				return 0, left, fault.Wrap("", err, "cannot list what changes")
			}
			own.Args = append(own.Args, tree)
		}
		temporary := filepath.Join(scratch, "tmp")
		if err := os.Mkdir(temporary, 0o700); err != nil {
			return 0, left, fault.Wrap(fault.Unavailable, err, "cannot make %q", temporary)
		}
		own.Env = append(own.Env, "TMPDIR="+temporary)
		code, err = interactive(ctx, own, s)
		return code, left, err
	}
	own.Args = append(own.Args, "--no-index", "--", "before", "after")
	code, err = interactive(ctx, own, s)
	if code == 1 { // there are differences, git diff --no-index(1)
		code = 0
	}
	return code, left, err
}

// wholeTrees reports whether one tool is to see all files at once.
func wholeTrees(flags []string) bool {
	return slices.ContainsFunc(flags, func(flag string) bool {
		return flag == "-d" || len(flag) > len("--di") && strings.HasPrefix("--dir-diff", flag)
	})
}
