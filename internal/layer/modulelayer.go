package layer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// modules returns the layer with the submodules of a tree: their files in their
// places, and their git directories, each with only what the commit reaches. A
// submodule that the host lacks stays an empty directory, as after git clone.
// config is the part of the superproject's own configuration about them.
func (c Cache) modules(ctx context.Context, r *git.Repository, tree string, o git.Owner, p Progress) (found sandbox.Modules, notes []string, config string, err error) {
	views, err := os.MkdirTemp("", "litterbox-modules-")
	if err != nil {
		return sandbox.Modules{}, nil, "", fault.Wrap(fault.Unavailable, err, "cannot look at the submodules")
	}
	defer os.RemoveAll(views)
	list, notes, err := modules(ctx, r, tree, views)
	if err != nil {
		return sandbox.Modules{}, nil, "", err
	}
	if c.hostLost(list) {
		return c.HadModules, nil, modulesConfig(list, ""), nil
	}
	job := moduleLayer{cache: c, list: list, owner: o, progress: p}
	for n := range list {
		m := &list[n]
		if m.Origin == "" {
			continue
		}
		if parent := job.parent(*m); parent != nil && parent.Origin == "" {
			m.Origin = ""
			continue
		}
		part, err := job.prepare(ctx, *m)
		if err != nil { // a shallow or damaged clone; the superproject works without it
			if ctx.Err() != nil {
				return sandbox.Modules{}, nil, "", err
			}
			notes = append(notes, fmt.Sprintf("the submodule %q is empty inside: %v (git -C %s fetch --unshallow)", m.Path, err, git.ShellWord(m.Path)))
			m.Origin = ""
			continue
		}
		job.parts = append(job.parts, part)
	}
	if len(job.parts) > 0 {
		dir, err := c.entry(ctx, modulesDir, job.key(r, tree), job.verify, func(dir string, lock *os.File) error {
			return job.build(ctx, dir, lock)
		})
		if err != nil {
			return sandbox.Modules{}, nil, "", err
		}
		found.Layer = filepath.Join(dir, "layer")
	}
	for _, m := range list {
		found.List = append(found.List, m.Module)
	}
	return found, notes, modulesConfig(list, ""), nil
}

// hostLost reports whether the sandbox has content of a submodule that the host
// no longer has.
func (c Cache) hostLost(list []module) bool {
	if c.HadModules.Layer == "" || !complete(filepath.Dir(c.HadModules.Layer), nil) {
		return false
	}
	return slices.ContainsFunc(c.HadModules.List, func(had sandbox.Module) bool {
		return had.Origin != "" && !slices.ContainsFunc(list, func(m module) bool { return m.Path == had.Path && m.Origin != "" })
	})
}

// moduleLayer is the work of making one such layer.
type moduleLayer struct {
	cache    Cache
	list     []module
	parts    []modulePart
	owner    git.Owner
	progress Progress
}

// modulePart is one submodule with content.
type modulePart struct {
	module
	git      gitLayer
	checkout checkout
}

func (j *moduleLayer) parent(m module) *module {
	dir := directParent(j.list, m)
	n := slices.IndexFunc(j.list, func(other module) bool { return other.GitDir == dir })
	if n < 0 {
		return nil
	}
	return &j.list[n]
}

// prepare packs everything the submodule's commit reaches, which also shows
// that the host has all of it.
func (j *moduleLayer) prepare(ctx context.Context, m module) (modulePart, error) {
	r := m.repo
	h, err := j.cache.history(ctx, r, m.Commit, j.owner, nil)
	if err != nil {
		return modulePart{}, err
	}
	tree, err := r.Command("rev-parse", "--verify", m.Commit+"^{tree}").Line(ctx)
	if err != nil {
		return modulePart{}, err
	}
	out, err := newCheckout(r, tree, j.owner, j.progress)
	if err != nil {
		return modulePart{}, err
	}
	s, err := r.Settings()
	if err != nil {
		return modulePart{}, err
	}
	found, err := r.Rules(s)
	inside := path.Join(".git", m.GitDir)
	up := strings.Repeat("../", strings.Count(inside, "/")+1)
	return modulePart{m, gitLayer{
		r: r, s: s, rules: found, history: h, owner: j.owner,
		modules: modulesConfig(j.list, m.GitDir), worktree: up + m.Path,
	}, out}, err
}

// key names everything that the layer's files depend on.
func (j *moduleLayer) key(r *git.Repository, tree string) string {
	h := sha256.New()
	fmt.Fprint(h, "1")
	for _, p := range j.parts {
		fmt.Fprintf(h, " %q %q %q %q %q %q", p.Path, p.GitDir, p.git.key0(), p.checkout.key(), p.git.config(), p.Origin)
	}
	return tree + "-" + repositoryHash(r) + "-" + hex.EncodeToString(h.Sum(nil)[:8]) + j.owner.Suffix()
}

// key0 returns the key without the index, which is not made yet.
func (l gitLayer) key0() string {
	return fmt.Sprintf("%q %q %q", l.exclude(), filepath.Base(l.history.dir), l.rules.Attributes)
}

func (j *moduleLayer) build(ctx context.Context, dir string, lock *os.File) error {
	layer := filepath.Join(dir, "layer")
	if err := makeDir(layer); err != nil {
		return err
	}
	for n, p := range j.parts { // a submodule comes before those nested in it
		work := filepath.Join(dir, fmt.Sprintf("work-%d", n))
		err := makeDir(work)
		if err == nil {
			err = p.checkout.run(ctx, work, lock)
		}
		if err == nil {
			err = p.place(work, layer)
		}
		if err != nil {
			return fault.Wrap("", err, "cannot prepare the submodule %q", p.Path)
		}
	}
	if j.owner.Chown {
		return chownAll(layer, j.owner)
	}
	return nil
}

// place moves the checked-out files to their place.
func (p modulePart) place(work, layer string) error {
	at, dotGit := filepath.Join(layer, p.Path), filepath.Join(layer, ".git", p.GitDir)
	if err := errors.Join(makeParents(layer, filepath.Dir(p.Path)), makeParents(filepath.Join(layer), path.Join(".git", p.GitDir))); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) { // the empty directory of a checked-out superproject
		return fault.Wrap(fault.Unavailable, err, "cannot place %q", p.Path)
	}
	if err := os.Rename(filepath.Join(work, "files"), at); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot place %q", p.Path)
	}
	up := strings.Repeat("../", strings.Count(p.Path, "/")+1)
	if err := writeReadable(filepath.Join(at, ".git"), []byte("gitdir: "+up+path.Join(".git", p.GitDir)+"\n")); err != nil {
		return err
	}
	p.git.tree = Tree{Dir: at, Index: filepath.Join(work, "index")}
	if err := p.git.fill(dotGit); err != nil {
		return err
	}
	if err := writeReadable(filepath.Join(dotGit, "HEAD"), []byte(p.Commit+"\n")); err != nil {
		return err
	}
	if err := os.RemoveAll(work); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot clear %q", work)
	}
	return nil
}

// makeParents makes each directory on the way readable, whatever the umask.
func makeParents(top, dir string) error {
	for part := range strings.SplitSeq(filepath.ToSlash(dir), "/") {
		top = filepath.Join(top, part)
		if err := makeDir(top); err != nil {
			return err
		}
	}
	return nil
}

// verify checks an entry of an earlier boot.
func (j *moduleLayer) verify(dir string) bool {
	for _, p := range j.parts {
		dotGit := filepath.Join(dir, "layer", ".git", p.GitDir)
		for _, name := range []string{"config", "HEAD", "index", packedRefs} {
			if info, err := os.Stat(filepath.Join(dotGit, name)); err != nil || info.Size() == 0 {
				return false
			}
		}
		check := git.VerifyFiles(p.git.r.ObjectFormat, filepath.Join(dotGit, "index"), filepath.Join(dir, "layer", p.Path))
		if !check || !verifyPacks(filepath.Join(dotGit, "objects", "pack")) {
			return false
		}
	}
	return true
}
