package landing

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
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
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return plan, fault.Wrap(fault.Unavailable, err, "cannot open %q", r.Top)
	}
	defer root.Close()
	written := map[string]bool{}
	for i, c := range changes {
		if !Below(c.Path, want.Paths) || Excluded(c.Path, want.Exclude) || c.NewMode == 0 && !want.Delete {
			continue
		}
		if why := cannotCome(root, c); why != "" {
			plan.Left = append(plan.Left, c.Path+": "+why)
			continue
		}
		stands, err := standing(ctx, r, root, c)
		if err != nil {
			return plan, err
		}
		if stands == c.NewOid && c.NewMode != 0 && sameMode(root, c) || stands == "" && c.NewMode == 0 {
			continue // it is there
		}
		before := c.OldOid
		if c.OldMode == 0 {
			before = ""
		}
		if i >= again && stands != before {
			continue // the human's by now
		}
		if stands != before && stands != c.NewOid && (stands == "" || stands != want.Had[c.Path]) {
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

// cannotCome says why a change cannot come into the checkout, if so. No link in
// the path is followed, and only files are replaced.
func cannotCome(root *os.Root, c Change) string {
	if why := git.BadPath(c.Path, c.NewMode); why != "" {
		return why
	}
	if c.NewMode == git.ModeGitlink || c.OldMode == git.ModeGitlink {
		return "a submodule comes by a merge only"
	}
	parts := strings.Split(c.Path, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		info, err := root.Lstat(at)
		if err != nil {
			return ""
		}
		switch last := i == len(parts)-1; {
		case !last && !info.IsDir():
			return "in your checkout " + at + " is not a directory"
		case last && info.IsDir():
			return "in your checkout it is a directory"
		case last && !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0:
			return "in your checkout it is not a file"
		}
	}
	return ""
}

// standing is the object id of the file at a path of the checkout, as git would
// add it; empty for nothing.
func standing(ctx context.Context, r *git.Repository, root *os.Root, c Change) (string, error) {
	info, err := root.Lstat(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read %q", c.Path)
	}
	file := filepath.Join(r.Top, c.Path)
	oid, err := hashFile(file, r.ObjectFormat)
	if err != nil || oid == c.NewOid || oid == c.OldOid || info.Mode()&fs.ModeSymlink != 0 {
		return oid, err
	}
	return hashAs(ctx, r, file, c.Path)
}

// sameMode reports whether the file there is of the kind that the change makes.
func sameMode(root *os.Root, c Change) bool {
	info, err := root.Lstat(c.Path)
	if err != nil {
		return false
	}
	if link := info.Mode()&fs.ModeSymlink != 0; link || c.NewMode == git.ModeLink {
		return link == (c.NewMode == git.ModeLink)
	}
	return (info.Mode()&0o100 != 0) == (c.NewMode == git.ModeExecutable)
}

// Bring writes the plan into the checkout, a file at a time and each in one
// step, and nothing into the index. each is told before every file.
func (b Back) Bring(ctx context.Context, r *git.Repository, each func(Change)) error {
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot open %q", r.Top)
	}
	defer root.Close()
	settings, err := r.AllSettings(ctx)
	if err != nil {
		return err
	}
	off := withoutFilters(settings)
	for _, c := range b.Writes {
		// Once more: the checkout is the human's, who goes on with it.
		if why := cannotCome(root, c); why != "" {
			return fault.New(fault.Conflict, "cannot bring %q: %s", c.Path, why)
		}
		each(c)
		if err := bring(ctx, r, root, off, c); err != nil {
			return fault.Wrap("", err, "cannot bring %q", c.Path)
		}
	}
	return nil
}

func bring(ctx context.Context, r *git.Repository, root *os.Root, off []string, c Change) error {
	if c.NewMode == 0 {
		err := root.Remove(c.Path)
		for dir := path.Dir(c.Path); err == nil && dir != "."; dir = path.Dir(dir) {
			if root.Remove(dir) != nil {
				break // it is not empty
			}
		}
		return err
	}
	content := r.InCheckout("cat-file", "--filters", "--path="+c.Path, c.NewOid)
	if c.NewMode == git.ModeLink {
		content = r.InCheckout("cat-file", "blob", c.NewOid)
	}
	content.Config = off
	data, err := content.Output(ctx)
	if err != nil {
		return err
	}
	if dir := path.Dir(c.Path); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	const beside = ".litterbox-sync-back"
	temp := path.Join(path.Dir(c.Path), beside)
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if c.NewMode == git.ModeLink {
		err = root.Symlink(string(data), temp)
	} else {
		err = writeNew(root, temp, data, c.NewMode == git.ModeExecutable)
	}
	if err == nil {
		err = root.Rename(temp, c.Path)
	}
	if err != nil {
		return errors.Join(err, ignoreGone(root.Remove(temp)))
	}
	return nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func writeNew(root *os.Root, name string, data []byte, executable bool) error {
	mode := fs.FileMode(0o666)
	if executable {
		mode = 0o777
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
