package landing

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// BackWants say which of a sandbox's changes come into the checkout without a
// merge.
type BackWants struct {
	Paths   []string // files and directories, from the top of the checkout; none means all
	Exclude []string // patterns, see [Excluded]
	Delete  bool     // files that the sandbox has deleted too
	// Had are the object ids that came into the checkout this way before, by
	// path.
	Had map[string]string
}

// Back is the plan, file by file.
type Back struct {
	Writes []Change
	Risks  []Risk   // that some of the writes bring
	Yours  []string // of the writes: paths that hold, or lack, something by the human's own doing
	Left   []string // paths that cannot come, with the reason
}

// Excluded reports whether patterns, as rsync reads them, leave a path out: one
// without a slash matches a name anywhere, one with a slash from the top on, and
// one that ends with a slash directories only.
func Excluded(name string, patterns []string) bool {
	parts := strings.Split(name, "/")
	for _, pattern := range patterns {
		bare, directory := strings.CutSuffix(pattern, "/")
		anchored := strings.Contains(bare, "/")
		bare = strings.TrimPrefix(bare, "/")
		for i := range parts {
			if directory && i == len(parts)-1 {
				break
			}
			tried := parts[i]
			if anchored {
				tried = path.Join(parts[:i+1]...)
			}
			if ok, err := path.Match(bare, tried); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// Below reports whether a path is one of others, or below one; with none of
// them it is.
func Below(name string, paths []string) bool {
	for _, at := range paths {
		if at == "." || at == "" || name == at || strings.HasPrefix(name, strings.TrimSuffix(at, "/")+"/") {
			return true
		}
	}
	return len(paths) == 0
}

// PlanBack compares what a sandbox has changed from base to tip with the
// checkout, and changes nothing.
func PlanBack(ctx context.Context, r *git.Repository, base, tip string, want BackWants) (Back, error) {
	var plan Back
	changes, risks, err := ChangedAgainst(ctx, r, base, tip)
	if err != nil {
		return plan, err
	}
	back, backRisks, err := undone(ctx, r, tip, changes, want.Had)
	if err != nil {
		return plan, err
	}
	again := len(changes)
	changes, risks = append(changes, back...), append(risks, backRisks...)
	var asked []Change
	repeated := map[string]bool{}
	for i, c := range changes {
		if !Below(c.Path, want.Paths) || Excluded(c.Path, want.Exclude) || c.NewMode == 0 && !want.Delete {
			continue
		}
		asked = append(asked, c)
		repeated[c.Path] = i >= again
	}
	stand, err := standing(ctx, r, asked)
	if err != nil {
		return plan, err
	}
	written := map[string]bool{}
	for i, c := range asked {
		there := stand[i]
		if there.why != "" {
			plan.Left = append(plan.Left, c.Path+": "+there.why)
			continue
		}
		if there.oid == c.NewOid && c.NewMode != 0 && sameMode(there.info, c.NewMode) || there.oid == "" && c.NewMode == 0 {
			continue // it is there
		}
		before := c.OldOid
		if c.OldMode == 0 {
			before = ""
		}
		if repeated[c.Path] && there.oid != before {
			continue // the human's by now
		}
		if there.oid != before && there.oid != c.NewOid && (there.oid == "" || there.oid != want.Had[c.Path]) {
			plan.Yours = append(plan.Yours, c.Path)
		}
		plan.Writes = append(plan.Writes, c)
		written[c.Path] = true
	}
	for _, risk := range risks {
		if written[risk.Path] {
			plan.Risks = append(plan.Risks, risk)
		}
	}
	return plan, nil
}

// undone are files that came into the checkout before and in which the sandbox no
// longer differs from its base: it has deleted what it had added, or taken a change
// back.
func undone(ctx context.Context, r *git.Repository, tip string, changes []Change, had map[string]string) ([]Change, []Risk, error) {
	missing := maps.Clone(had)
	for _, c := range changes {
		delete(missing, c.Path)
	}
	if len(missing) == 0 {
		return nil, nil, nil
	}
	now, err := entries(ctx, r, tip, slices.Sorted(maps.Keys(missing)))
	if err != nil {
		return nil, nil, err
	}
	var found []Change
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		c := now[name] // nothing: deleted
		c.Path = name
		if oid := had[name]; oid != r.Zero() {
			c.OldMode, c.OldOid = git.ModeFile, oid
		}
		if c.OldMode != 0 || c.NewMode != 0 {
			found = append(found, c)
		}
	}
	risks, err := risks(ctx, r, r.Command, found, "ls-tree", "-r", "-z", tip)
	return found, risks, err
}

// entries are the files that a commit has at some paths, as changes that would
// add them.
func entries(ctx context.Context, r *git.Repository, commit string, paths []string) (map[string]Change, error) {
	found := map[string]Change{}
	for some := range slices.Chunk(paths, 500) { // a command line is bounded
		out, err := r.Command(append([]string{"ls-tree", "-z", "--full-tree", commit, "--"}, some...)...).Output(ctx)
		if err != nil {
			return nil, fault.Wrap("", err, "cannot look into %s", commit)
		}
		for line := range strings.SplitSeq(string(out), "\x00") {
			what, name, ok := strings.Cut(line, "\t")
			if f := strings.Fields(what); ok && len(f) == 3 && f[1] != "tree" {
				found[name] = Change{Path: name, NewMode: git.Octal(f[0]), NewOid: f[2], Status: 'M'}
			}
		}
	}
	return found, nil
}

// Without is the plan without the paths that need an answer.
func (b Back) Without() (rest Back, asked []string) {
	about := map[string]bool{}
	for _, name := range b.Yours {
		about[name] = true
	}
	for _, risk := range b.Risks {
		about[risk.Path] = true
	}
	rest.Left = b.Left
	for _, c := range b.Writes {
		if about[c.Path] {
			asked = append(asked, c.Path)
			continue
		}
		rest.Writes = append(rest.Writes, c)
	}
	return rest, asked
}

// stood is what stands in the checkout at the path of a change.
type stood struct {
	info fs.FileInfo // nil for nothing
	oid  string      // of the file as git would add it; empty for nothing
	why  string      // why the change cannot come
}

// standing looks at what stands at the paths of changes.
func standing(ctx context.Context, r *git.Repository, changes []Change) ([]stood, error) {
	tree, err := openCheckout(r)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	found := make([]stood, len(changes))
	var others []string // files with the bytes of neither side
	for i, c := range changes {
		s := &found[i]
		if s.info, s.why, err = cannotCome(tree, c); err != nil {
			return nil, err
		}
		if s.why != "" || s.info == nil {
			continue
		}
		if s.oid, err = tree.hash(c.Path, s.info); err != nil {
			return nil, err
		}
		if s.oid != c.NewOid && s.oid != c.OldOid && !isLink(s.info) {
			others = append(others, c.Path)
		}
	}
	if len(others) == 0 {
		return found, nil
	}
	conversions, err := readConversions(ctx, r)
	if err != nil {
		return nil, err
	}
	added, err := conversions.hashes(ctx, others)
	if err != nil {
		return nil, err
	}
	for i, c := range changes {
		if oid, ok := added[c.Path]; ok {
			found[i].oid = oid
		}
	}
	return found, nil
}

// cannotCome returns what stands at a change's path, or why the change cannot come
// into the checkout. No link in the path is followed, and only files are replaced.
func cannotCome(tree *checkout, c Change) (info fs.FileInfo, why string, err error) {
	if why := git.BadPath(c.Path, c.NewMode); why != "" {
		return nil, why, nil
	}
	if c.NewMode == git.ModeGitlink || c.OldMode == git.ModeGitlink {
		return nil, "a submodule comes by a merge only", nil
	}
	return tree.look(c.Path)
}

// sameMode reports whether a file is of the kind of a mode of git's.
func sameMode(info fs.FileInfo, mode uint32) bool {
	if link := isLink(info); link || mode == git.ModeLink {
		return link == (mode == git.ModeLink)
	}
	return (info.Mode()&0o100 != 0) == (mode == git.ModeExecutable)
}

// Bring writes the plan into the checkout, a file at a time and each in one
// step, and nothing into the index. each is told before every file.
func (b Back) Bring(ctx context.Context, r *git.Repository, each func(Change)) error {
	tree, err := openCheckout(r)
	if err != nil {
		return err
	}
	defer tree.Close()
	conversions, err := readConversions(ctx, r)
	if err != nil {
		return err
	}
	for rest := attributesFirst(b.Writes); len(rest) > 0; {
		some := rest
		// Attributes that come hold for what comes after them.
		if i := slices.IndexFunc(rest, isAttributes); i >= 0 {
			some = rest[:i+1]
		}
		rest = rest[len(some):]
		if err := bring(ctx, tree, conversions, some, each); err != nil {
			return err
		}
	}
	return nil
}

func isAttributes(c Change) bool { return path.Base(c.Path) == ".gitattributes" }

// attributesFirst puts the attributes of each directory before all else that comes
// into it: git has them all before it writes the first file.
func attributesFirst(changes []Change) []Change {
	var ordered []Change
	for _, c := range changes {
		at := len(ordered)
		if isAttributes(c) {
			dir := strings.TrimSuffix(c.Path, ".gitattributes")
			if i := slices.IndexFunc(ordered, func(other Change) bool { return strings.HasPrefix(other.Path, dir) }); i >= 0 {
				at = i
			}
		}
		ordered = slices.Insert(ordered, at, c)
	}
	return ordered
}

// bring writes changes whose attributes are known.
func bring(ctx context.Context, tree *checkout, conversions *conversions, changes []Change, each func(Change)) error {
	var names, oids []string
	for _, c := range changes {
		if c.NewMode != 0 && c.NewMode != git.ModeLink {
			names = append(names, c.Path)
		}
	}
	converted, err := conversions.converted(ctx, names)
	if err != nil {
		return err
	}
	var convert []Change
	for _, c := range changes {
		switch {
		case c.NewMode == 0:
		case converted[c.Path]:
			convert = append(convert, c)
		default:
			oids = append(oids, c.NewOid)
		}
	}
	stream, converting := conversions.r.Stream(ctx, oids), conversions.stream(ctx, convert)
	defer stream.Close()
	defer converting.Close()
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return fault.Wrap(fault.Canceled, err, "cannot bring %q", c.Path)
		}
		// Once more: the checkout is the human's, who goes on with it.
		_, why, err := cannotCome(tree, c)
		if why != "" {
			return fault.New(fault.Conflict, "cannot bring %q: %s", c.Path, why)
		}
		if err == nil {
			each(c)
			if converted[c.Path] {
				err = bringConverted(ctx, tree, converting, c)
			} else {
				err = bringOne(tree, stream, c)
			}
		}
		if err != nil {
			return fault.Wrap("", err, "cannot bring %q", c.Path)
		}
	}
	return nil
}

func bringConverted(ctx context.Context, tree *checkout, stream *convertedStream, c Change) error {
	data, err := stream.next(ctx, c)
	if err != nil {
		return err
	}
	return tree.write(c.Path, bytes.NewReader(data), c.NewMode == git.ModeExecutable)
}

func bringOne(tree *checkout, stream *git.Stream, c Change) error {
	if c.NewMode == 0 {
		return tree.remove(c.Path)
	}
	_, size, content, err := stream.Next()
	if err != nil {
		return err
	}
	if c.NewMode != git.ModeLink {
		return tree.write(c.Path, content, c.NewMode == git.ModeExecutable)
	}
	if size > git.MaxPath {
		return fault.New(fault.Unsupported, "a link of %d bytes is too long", size)
	}
	var target strings.Builder
	if _, err := io.Copy(&target, content); err != nil {
		return err
	}
	return tree.link(c.Path, target.String())
}
