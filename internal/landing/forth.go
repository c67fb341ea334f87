package landing

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// IgnoreFile holds patterns, as gitignore(5) has them, of files that a sync keeps
// out of sandboxes unless they are named.
const IgnoreFile = ".litterboxignore"

// ForthWants say which files of the checkout come into a sandbox.
type ForthWants struct {
	Paths   []string // from the top of the checkout; none means all
	Exclude []string // see [Excluded]
	Delete  bool     // files that the checkout lacks
}

// Forth is the plan of copies and deletions, sorted.
type Forth struct {
	Copies  []string
	Deletes []string
}

// PlanForth compares files of the checkout, tracked or not, with the tree of tip.
// Untracked hidden files, and files that git or [IgnoreFile] ignores, come only
// where they are named.
func PlanForth(ctx context.Context, r *git.Repository, tip string, want ForthWants) (Forth, error) {
	var plan Forth
	tree, err := openCheckout(r)
	if err != nil {
		return plan, err
	}
	defer tree.Close()
	names, err := offered(ctx, r, tree.top, want.Paths)
	if err != nil {
		return plan, err
	}
	there, err := treeOf(ctx, r, tip)
	if err != nil {
		return plan, err
	}
	var both []Change
	for _, name := range names {
		if Excluded(name, want.Exclude) || git.BadPath(name, git.ModeFile) != "" {
			continue
		}
		info, why, err := tree.look(name)
		if err != nil || info == nil || why != "" {
			continue // deleted, a repository in the repository, or not a file to copy
		}
		if entry, known := there[name]; known && entry.mode != git.ModeGitlink && sameMode(info, entry.mode) {
			both = append(both, Change{Path: name, NewMode: entry.mode, NewOid: entry.oid})
			continue
		}
		plan.Copies = append(plan.Copies, name)
	}
	stand, err := standing(ctx, r, both)
	if err != nil {
		return plan, err
	}
	for i, c := range both {
		if stand[i].info != nil && stand[i].why == "" && stand[i].oid != c.NewOid {
			plan.Copies = append(plan.Copies, c.Path)
		}
	}
	for name := range there {
		if !want.Delete || !Below(name, want.Paths) || Excluded(name, want.Exclude) || there[name].mode == git.ModeGitlink {
			continue
		}
		if _, err := tree.top.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			plan.Deletes = append(plan.Deletes, name)
		}
	}
	slices.Sort(plan.Copies)
	slices.Sort(plan.Deletes)
	return plan, nil
}

// offered lists the files of the checkout that may come.
func offered(ctx context.Context, r *git.Repository, root *os.Root, paths []string) ([]string, error) {
	flags := []string{"--literal-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard"}
	if info, err := root.Lstat(IgnoreFile); err == nil && info.Mode().IsRegular() {
		flags = append(flags, "--exclude-from="+filepath.Join(r.Top, IgnoreFile))
	}
	names, err := listed(ctx, r, append(append(flags, "--"), paths...))
	if err != nil {
		return nil, err
	}
	tracked, err := tracked(ctx, r, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !hidden(name) }))
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return hidden(name) && !tracked[name] })
	ignored, err := r.Ignored(ctx, paths)
	if err != nil {
		return nil, err
	}
	for _, named := range paths {
		if _, err := root.Lstat(named); err != nil {
			continue
		}
		if !hidden(named) && !ignored[named] && slices.ContainsFunc(names, func(name string) bool { return Below(name, []string{named}) }) {
			continue
		}
		more, err := listed(ctx, r, []string{"--literal-pathspecs", "ls-files", "-z", "--others", "--", named})
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// hidden reports whether a path has a name that begins with a dot.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.Contains(name, "/.") }

func listed(ctx context.Context, r *git.Repository, args []string) ([]string, error) {
	out, err := r.InCheckout(args...).Output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list the files of the checkout")
	}
	var names []string
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	return names, nil
}

type leaf struct {
	mode uint32
	oid  string
}

// treeOf lists the files of a commit's tree.
func treeOf(ctx context.Context, r *git.Repository, commit string) (map[string]leaf, error) {
	changed, err := changes(ctx, r, r.EmptyTree(), commit)
	if err != nil {
		return nil, err
	}
	files := make(map[string]leaf, len(changed))
	for _, c := range changed {
		files[c.Path] = leaf{c.NewMode, c.NewOid}
	}
	return files, nil
}
