package landing

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// Preview is the result of a merge of Tip into a checkout at Head.
type Preview struct {
	Head, Tip   string
	UpToDate    bool     // there is nothing to merge
	FastForward bool     // Head is behind Tip
	Tree        string   // the tree that the merge makes; "" where it has conflicts
	Changes     []Change // of Head's tree, entry by entry
	Conflicts   []string // paths
	Risks       []Risk   // of Changes
	Refusal     *Refusal // git would not merge
}

// Refusal is how git ended instead of merging.
type Refusal struct {
	ExitCode int
	Message  string
}

// Rehearse finds the result of git merge with these arguments. Head is read again.
// scratch is a directory for files of its own, which it replaces.
//
// Where Head is behind the tip, the result is the tip's tree. Anything else is
// rehearsed: the installed git does the same merge, with the user's configuration
// and flags, in an empty work tree and with an object store of its own. So the
// actual result of git's version, strategy and options is judged, and nothing in
// the repository changes meanwhile.
func Rehearse(ctx context.Context, r *git.Repository, scratch, tip string, args []string) (p Preview, err error) {
	if err := git.CheckOids(tip); err != nil {
		return Preview{}, err
	}
	head, tree, err := headNow(ctx, r)
	if err != nil {
		return Preview{}, err
	}
	p = Preview{Head: head, Tip: tip, Tree: tree}
	base, err := r.Command("merge-base", head, tip).Line(ctx)
	if err != nil && git.ExitCode(err) != 1 { // 1: unrelated
		return Preview{}, fault.Wrap("", err, "cannot find where %s and %s parted", head, tip)
	}
	p.FastForward, p.UpToDate = base == head, base == tip
	flags := ReadMergeFlags(args)
	strategy, err := ownStrategy(ctx, r)
	if err != nil {
		return Preview{}, err
	}
	plain := !strategy && !flags.strategy && len(flags.revisions) == 0
	switch {
	case p.UpToDate && plain:
		return p, nil
	case p.FastForward && plain:
		if _, p.Tree, err = r.Resolve(ctx, tip); err != nil {
			return Preview{}, err
		}
		if p.Changes, err = changes(ctx, r, head, p.Tree); err != nil {
			return Preview{}, err
		}
		p.Risks, err = risks(ctx, r, r.Command, p.Changes, "ls-tree", "-r", "-z", p.Tree)
		return p, err
	}
	return p, rehearse(ctx, r, &p, scratch, flags)
}

// ownStrategy reports whether the user's configuration names strategies or
// options for merges.
func ownStrategy(ctx context.Context, r *git.Repository) (bool, error) {
	s, err := r.AllSettings(ctx)
	if err != nil {
		return false, err
	}
	if s.Of("pull.twohead") != "" || s.Of("pull.octopus") != "" {
		return true, nil
	}
	ref, err := headRef(ctx, r)
	return s.Of("branch."+strings.TrimPrefix(ref, git.Heads)+".mergeoptions") != "", err
}

// headRef is the branch that is checked out, as a full name; "" for none.
func headRef(ctx context.Context, r *git.Repository) (string, error) {
	ref, err := r.InCheckout("symbolic-ref", "--quiet", "HEAD").Line(ctx)
	if git.ExitCode(err) == 1 {
		return "", nil
	}
	return ref, err
}

func changes(ctx context.Context, r *git.Repository, from, to string) ([]Change, error) {
	diffs, err := r.DiffTrees(ctx, from, to)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list what changes")
	}
	return asChanges(diffs), nil
}

func asChanges(diffs []git.TreeDiff) []Change {
	changes := make([]Change, 0, len(diffs))
	for _, d := range diffs {
		changes = append(changes, Change{Path: d.Path, OldMode: d.OldMode, NewMode: d.NewMode, OldOid: d.OldOid, NewOid: d.NewOid, Status: d.Status})
	}
	return changes
}

// rehearse does the merge in scratch and fills the result into p.
func rehearse(ctx context.Context, r *git.Repository, p *Preview, scratch string, flags MergeFlags) (err error) {
	copies, err := makeStage(ctx, r, scratch, p.Head)
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err != nil {
		return err
	}
	merged, err := mergeInStage(ctx, r, copies, p.Head, p.Tip, flags)
	if err != nil {
		return err
	}
	if p.Changes, p.Conflicts, err = indexChanges(ctx, copies, p.Head); err != nil {
		return err
	}
	p.Tree = ""
	var failure *git.Failure
	switch {
	case len(p.Conflicts) > 0:
	case errors.As(merged, &failure):
		p.Changes = nil
		p.Refusal = &Refusal{ExitCode: failure.Code, Message: strings.TrimRight(failure.Stderr, "\n")}
		return nil
	default:
		if p.Tree, err = copies("write-tree").Line(ctx); err != nil {
			return fault.Wrap("", err, "cannot read what the merge would make")
		}
	}
	p.Risks, err = risks(ctx, r, copies, p.Changes, "ls-files", "--stage", "-z")
	return err
}

// mergeInStage merges as git will in the checkout. merged is how git ended.
func mergeInStage(ctx context.Context, r *git.Repository, copies func(...string) git.Command, head, tip string, flags MergeFlags) (merged, err error) {
	if _, err := copies("read-tree", "-m", "-u", head).Output(ctx); err != nil {
		return nil, fault.Wrap("", err, "cannot prepare a rehearsal of the merge")
	}
	args := append([]string{"merge"}, flags.content...)
	args = append(args, "--no-squash", "--no-commit", "--no-stat")
	for _, revision := range flags.revisions {
		commit, _, err := r.Resolve(ctx, revision)
		if err != nil {
			return nil, err
		}
		args = append(args, commit)
	}
	_, merged = copies(append(args, tip)...).Output(ctx)
	if merged != nil && git.ExitCode(merged) < 0 {
		return nil, merged
	}
	return merged, nil
}

// makeStage makes the repository of a rehearsal: objects of r by reference,
// one ref, r's configuration, and a work tree that stays empty.
func makeStage(ctx context.Context, r *git.Repository, scratch, head string) (func(args ...string) git.Command, error) {
	if err := os.RemoveAll(scratch); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot clear %q", scratch)
	}
	ref, err := headRef(ctx, r)
	if err != nil {
		return nil, err
	}
	config := layer.FormatConfig(r) + "[include]\n\tpath = " + layer.QuoteConfig(filepath.Join(r.CommonDir, "config")) + "\n"
	if _, err := os.Stat(filepath.Join(r.GitDir, "config.worktree")); err == nil {
		config += "\tpath = " + layer.QuoteConfig(filepath.Join(r.GitDir, "config.worktree")) + "\n"
	}
	files := map[string]string{
		"config":                  config,
		"HEAD":                    head + "\n",
		"objects/info/alternates": filepath.Join(r.CommonDir, "objects") + "\n",
		"info/sparse-checkout":    "!/*\n",
		"refs/.keep":              "",
		"tree/.keep":              "",
	}
	if ref != "" {
		files["HEAD"] = "ref: " + ref + "\n"
		files["packed-refs"] = "# pack-refs with: peeled fully-peeled sorted \n" + head + " " + ref + "\n"
	}
	for name, from := range map[string]string{layer.Shallow: layer.Shallow, "info/attributes": "info/attributes"} {
		content, err := os.ReadFile(filepath.Join(r.CommonDir, from))
		if err == nil {
			files[name] = string(content)
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot read %q", from)
		}
	}
	for name, content := range files {
		path := filepath.Join(scratch, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot make %q", path)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
		}
	}
	tree := filepath.Join(scratch, "tree")
	if err := os.Remove(filepath.Join(tree, ".keep")); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot clear %q", tree)
	}
	settings, err := r.AllSettings(ctx)
	if err != nil {
		return nil, err
	}
	own := append([]string{
		"core.sparseCheckout=true", "core.sparseCheckoutCone=false", "index.sparse=false", "core.splitIndex=false",
		"core.untrackedCache=false", "submodule.recurse=false", "rerere.enabled=false", "merge.autoStash=false",
		"merge.verifySignatures=false", "advice.updateSparsePath=false",
	}, withoutFilters(settings)...)
	return func(args ...string) git.Command {
		return git.Command{GitDir: scratch, Dir: tree, Config: own, Env: []string{"GIT_WORK_TREE=" + tree, "GIT_EDITOR=:"}, Args: args}
	}, nil
}

// withoutFilters turns off the programs that attributes choose for content:
// files with conflicts are written in a rehearsal too, and the attributes may
// be those of the branch.
func withoutFilters(s *git.Settings) []string {
	var off []string
	for key := range s.Values {
		name, ok := strings.CutPrefix(key, "filter.")
		if !ok {
			continue
		}
		switch name[strings.LastIndexByte(name, '.')+1:] {
		case "clean", "smudge", "process":
			off = append(off, key+"=")
		case "required":
			off = append(off, key+"=false")
		}
	}
	slices.Sort(off)
	return off
}

// indexChanges compares an index with head. For a conflict it gives the merged
// side.
func indexChanges(ctx context.Context, copies func(...string) git.Command, head string) ([]Change, []string, error) {
	out, err := copies("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", head, "--").Output(ctx)
	if err != nil {
		return nil, nil, fault.Wrap("", err, "cannot list what changes")
	}
	diffs, err := git.ParseRaw(out)
	if err != nil {
		return nil, nil, err
	}
	changes := asChanges(slices.DeleteFunc(diffs, func(d git.TreeDiff) bool { return d.Status == 'U' }))
	if out, err = copies("ls-files", "--unmerged", "-z").Output(ctx); err != nil {
		return nil, nil, fault.Wrap("", err, "cannot list the conflicts")
	}
	ours, conflicts := map[string]Change{}, []string(nil)
	for record := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		meta, path, _ := strings.Cut(string(record), "\t")
		f := strings.Fields(meta)
		if len(f) != 3 {
			continue
		}
		if n := len(conflicts); n == 0 || conflicts[n-1] != path {
			conflicts = append(conflicts, path)
		}
		switch f[2] {
		case "2":
			ours[path] = Change{OldMode: git.Octal(f[0]), OldOid: f[1]}
		case "3":
			before := ours[path]
			changes = append(changes, Change{Path: path, OldMode: before.OldMode, OldOid: before.OldOid, NewMode: git.Octal(f[0]), NewOid: f[1], Status: 'U'})
		}
	}
	return changes, conflicts, nil
}

// Made reads the result of a merge in the checkout: the changes of its index
// against head, and the paths with conflicts.
func Made(ctx context.Context, r *git.Repository, head string) ([]Change, []string, error) {
	if err := git.CheckOids(head); err != nil {
		return nil, nil, err
	}
	return indexChanges(ctx, r.InCheckout, head)
}

// JudgeMade names the risks among changes of the checkout's index.
func JudgeMade(ctx context.Context, r *git.Repository, changes []Change) ([]Risk, error) {
	return risks(ctx, r, r.InCheckout, changes, "ls-files", "--stage", "-z")
}

// HeadIs reads HEAD again and reports whether it is still commit.
func HeadIs(ctx context.Context, r *git.Repository, commit string) (bool, error) {
	now, _, err := headNow(ctx, r)
	return now == commit, err
}

// TakeBack undoes a merge, committed or not: HEAD and index are those of head
// again, and the human's later changes stay. It fails where that cannot be.
func TakeBack(ctx context.Context, r *git.Repository, head string) error {
	if err := git.CheckOids(head); err != nil {
		return err
	}
	if _, err := r.InCheckout("reset", "--quiet", "--merge", head).Output(ctx); err != nil {
		return fault.Wrap(fault.Conflict, err, "cannot take the merge back").WithHint("git status; git reset --merge %s", head)
	}
	return nil
}

// MergeState is the state in which git left a merge.
type MergeState struct {
	Head     string // HEAD's commit
	Tree     string // and its tree
	Parents  []string
	Waits    bool // the merge is to be finished by a commit
	Squashed bool // changes were staged, for a commit of the human's
}

// AfterMerge reads the state of the checkout after a merge.
func AfterMerge(ctx context.Context, r *git.Repository) (MergeState, error) {
	found, err := r.LookUp(ctx, "HEAD^{commit}", "HEAD^{tree}", "HEAD^1", "HEAD^2")
	if err != nil {
		return MergeState{}, fault.Wrap("", err, "cannot see what the merge made")
	}
	s := MergeState{Head: found[0].Oid, Tree: found[1].Oid}
	for _, parent := range found[2:] {
		if parent.Kind == "commit" {
			s.Parents = append(s.Parents, parent.Oid)
		}
	}
	for name, is := range map[string]*bool{"MERGE_HEAD": &s.Waits, "SQUASH_MSG": &s.Squashed} {
		_, err := os.Stat(filepath.Join(r.GitDir, name))
		*is = err == nil
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return MergeState{}, fault.Wrap(fault.Unavailable, err, "cannot see what the merge made")
		}
	}
	return s, nil
}

// Key names the content of a risk at its path, for a record of what was approved.
func (r Risk) Key() string {
	return strconv.FormatUint(uint64(r.change.NewMode), 8) + " " + r.change.NewOid + " " + strconv.Quote(r.Path)
}
