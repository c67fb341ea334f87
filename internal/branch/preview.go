package branch

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
)

// Preview is what a merge of Tip would make of a checkout at Head.
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

// Preview finds out what git merge with these arguments would make. Head is
// read anew. scratch is a directory for files of its own, which it replaces.
//
// Where Head is behind the tip, the result is the tip's tree. Anything else is
// rehearsed: the installed git does the same merge, with the user's
// configuration and flags, in an empty work tree and with an object store of
// its own. So whatever git's version, strategy and options make is what is
// judged, and nothing of the repository changes meanwhile.
func (r *Repository) Preview(ctx context.Context, scratch, tip string, args []string) (p Preview, err error) {
	if err := checkOids(tip); err != nil {
		return Preview{}, err
	}
	head, tree, err := r.headNow(ctx)
	if err != nil {
		return Preview{}, err
	}
	p = Preview{Head: head, Tip: tip, Tree: tree}
	base, err := r.git("merge-base", head, tip).line(ctx)
	if err != nil && exitCode(err) != 1 { // 1: unrelated
		return Preview{}, fault.Wrap("", err, "cannot find where %s and %s parted", head, tip)
	}
	p.FastForward, p.UpToDate = base == head, base == tip
	flags := ReadMergeFlags(args)
	strategy, err := r.ownStrategy(ctx)
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
		if p.Changes, err = r.changes(ctx, head, p.Tree); err != nil {
			return Preview{}, err
		}
		p.Risks, err = r.risks(ctx, r.git, p.Changes, "ls-tree", "-r", "-z", p.Tree)
		return p, err
	}
	return p, r.rehearse(ctx, &p, scratch, flags)
}

// ownStrategy reports whether the user's configuration names strategies or
// options for merges.
func (r *Repository) ownStrategy(ctx context.Context) (bool, error) {
	s, err := r.allSettings(ctx)
	if err != nil {
		return false, err
	}
	if s.of("pull.twohead") != "" || s.of("pull.octopus") != "" {
		return true, nil
	}
	ref, err := r.headRef(ctx)
	return s.of("branch."+strings.TrimPrefix(ref, heads)+".mergeoptions") != "", err
}

// headRef is the branch that is checked out, as a full name; "" for none.
func (r *Repository) headRef(ctx context.Context) (string, error) {
	ref, err := r.checkout("symbolic-ref", "--quiet", "HEAD").line(ctx)
	if exitCode(err) == 1 {
		return "", nil
	}
	return ref, err
}

func (r *Repository) changes(ctx context.Context, from, to string) ([]Change, error) {
	diffs, err := r.diffTrees(ctx, from, to)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list what changes")
	}
	return asChanges(diffs), nil
}

func asChanges(diffs []treeDiff) []Change {
	changes := make([]Change, 0, len(diffs))
	for _, d := range diffs {
		changes = append(changes, Change{Path: d.path, OldMode: d.oldMode, NewMode: d.newMode, OldOid: d.oldOid, NewOid: d.newOid, Status: d.status})
	}
	return changes
}

// rehearse does the merge in scratch and fills in p what came of it.
func (r *Repository) rehearse(ctx context.Context, p *Preview, scratch string, flags MergeFlags) (err error) {
	git, err := r.makeStage(ctx, scratch, p.Head)
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if err != nil {
		return err
	}
	if _, err := git("read-tree", "-m", "-u", p.Head).output(ctx); err != nil {
		return fault.Wrap("", err, "cannot prepare a rehearsal of the merge")
	}
	args := append([]string{"merge"}, flags.content...)
	args = append(args, "--no-squash", "--no-commit", "--no-stat")
	for _, revision := range flags.revisions {
		commit, _, err := r.Resolve(ctx, revision)
		if err != nil {
			return err
		}
		args = append(args, commit)
	}
	_, merged := git(append(args, p.Tip)...).output(ctx)
	if merged != nil && exitCode(merged) < 0 {
		return merged
	}
	if p.Changes, p.Conflicts, err = indexChanges(ctx, git, p.Head); err != nil {
		return err
	}
	p.Tree = ""
	var failure *gitFailure
	switch {
	case len(p.Conflicts) > 0:
	case errors.As(merged, &failure):
		p.Changes = nil
		p.Refusal = &Refusal{ExitCode: failure.Code, Message: strings.TrimRight(failure.Stderr, "\n")}
		return nil
	default:
		if p.Tree, err = git("write-tree").line(ctx); err != nil {
			return fault.Wrap("", err, "cannot read what the merge would make")
		}
	}
	p.Risks, err = r.risks(ctx, git, p.Changes, "ls-files", "--stage", "-z")
	return err
}

// makeStage makes the repository of a rehearsal: objects of r by reference,
// one ref, r's configuration, and a work tree that stays empty.
func (r *Repository) makeStage(ctx context.Context, scratch, head string) (func(args ...string) call, error) {
	if err := os.RemoveAll(scratch); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot clear %q", scratch)
	}
	ref, err := r.headRef(ctx)
	if err != nil {
		return nil, err
	}
	config := r.formatConfig() + "[include]\n\tpath = " + quoteConfig(filepath.Join(r.CommonDir, "config")) + "\n"
	if _, err := os.Stat(filepath.Join(r.GitDir, "config.worktree")); err == nil {
		config += "\tpath = " + quoteConfig(filepath.Join(r.GitDir, "config.worktree")) + "\n"
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
	for name, from := range map[string]string{shallow: shallow, "info/attributes": "info/attributes"} {
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
	settings, err := r.allSettings(ctx)
	if err != nil {
		return nil, err
	}
	own := append([]string{
		"core.sparseCheckout=true", "core.sparseCheckoutCone=false", "index.sparse=false", "core.splitIndex=false",
		"core.untrackedCache=false", "submodule.recurse=false", "rerere.enabled=false", "merge.autoStash=false",
		"merge.verifySignatures=false", "advice.updateSparsePath=false",
	}, withoutFilters(settings)...)
	return func(args ...string) call {
		return call{gitDir: scratch, dir: tree, config: own, env: []string{"GIT_WORK_TREE=" + tree, "GIT_EDITOR=:"}, args: args}
	}, nil
}

// withoutFilters turns off the programs that attributes choose for content:
// files with conflicts are written in a rehearsal too, and the attributes may
// be those of the branch.
func withoutFilters(s *settings) []string {
	var off []string
	for key := range s.values {
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

// indexChanges compares an index with head. Of a conflict it gives what the
// merged side has.
func indexChanges(ctx context.Context, git func(...string) call, head string) ([]Change, []string, error) {
	out, err := git("diff-index", "--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", head, "--").output(ctx)
	if err != nil {
		return nil, nil, fault.Wrap("", err, "cannot list what changes")
	}
	diffs, err := parseRaw(out)
	if err != nil {
		return nil, nil, err
	}
	changes := asChanges(slices.DeleteFunc(diffs, func(d treeDiff) bool { return d.status == 'U' }))
	if out, err = git("ls-files", "--unmerged", "-z").output(ctx); err != nil {
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
			ours[path] = Change{OldMode: octal(f[0]), OldOid: f[1]}
		case "3":
			before := ours[path]
			changes = append(changes, Change{Path: path, OldMode: before.OldMode, OldOid: before.OldOid, NewMode: octal(f[0]), NewOid: f[1], Status: 'U'})
		}
	}
	return changes, conflicts, nil
}

// Made reads what a merge has made of the checkout: the changes of its index
// against head, and the paths with conflicts.
func (r *Repository) Made(ctx context.Context, head string) ([]Change, []string, error) {
	if err := checkOids(head); err != nil {
		return nil, nil, err
	}
	return indexChanges(ctx, r.checkout, head)
}

// JudgeMade names the risks among changes of the checkout's index.
func (r *Repository) JudgeMade(ctx context.Context, changes []Change) ([]Risk, error) {
	return r.risks(ctx, r.checkout, changes, "ls-files", "--stage", "-z")
}

// HeadIs reads HEAD again and reports whether it is still commit.
func (r *Repository) HeadIs(ctx context.Context, commit string) (bool, error) {
	now, _, err := r.headNow(ctx)
	return now == commit, err
}

// TakeBack undoes a merge, committed or not: HEAD and index are those of head
// again, and what the human changed since stays. It fails where that cannot be.
func (r *Repository) TakeBack(ctx context.Context, head string) error {
	if err := checkOids(head); err != nil {
		return err
	}
	if _, err := r.checkout("reset", "--quiet", "--merge", head).output(ctx); err != nil {
		return fault.Wrap(fault.Conflict, err, "cannot take the merge back").WithHint("git status; git reset --merge %s", head)
	}
	return nil
}

// MergeState is what git has left of a merge.
type MergeState struct {
	Head     string // HEAD's commit
	Tree     string // and its tree
	Parents  []string
	Waits    bool // the merge is to be finished by a commit
	Squashed bool // changes were staged, for a commit of the human's
}

// AfterMerge reads what a merge has made of the checkout.
func (r *Repository) AfterMerge(ctx context.Context) (MergeState, error) {
	found, err := r.lookUp(ctx, "HEAD^{commit}", "HEAD^{tree}", "HEAD^1", "HEAD^2")
	if err != nil {
		return MergeState{}, fault.Wrap("", err, "cannot see what the merge made")
	}
	s := MergeState{Head: found[0].oid, Tree: found[1].oid}
	for _, parent := range found[2:] {
		if parent.kind == "commit" {
			s.Parents = append(s.Parents, parent.oid)
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
