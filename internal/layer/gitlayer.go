package layer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/fsmonitor"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Mend is the script inside that restores a removed .git: Mend BRANCH.
const Mend = fsmonitor.Mend

// Git returns a directory that holds only .git: the history of base as a
// read-only layer, without HEAD, which is each sandbox's own ([PrepareUpper]).
// Its objects are those reachable from base and from the tags merged into it,
// never the host's object directory, which would expose stashes, other
// branches and reset secrets. It may be called concurrently.
func (c Cache) Git(ctx context.Context, r *git.Repository, base string, tree Tree, o git.Owner, p Progress) (string, error) {
	h, err := c.history(ctx, r, base, o, p)
	if err != nil {
		return "", err
	}
	return c.git(ctx, r, h, tree, o, "")
}

// Layers returns the files of a tree and the history of the commit base, made
// at the same time, as the layers of a workspace; after them the submodules.
func (c Cache) Layers(ctx context.Context, r *git.Repository, base, tree string, o git.Owner, p Progress) (Layers, error) {
	type found struct {
		history
		err error
	}
	var checkedOut atomic.Bool
	var later Progress // one kind of work shows at a time
	if p != nil {
		later = func(label string, done, total int) {
			if checkedOut.Load() {
				p(label, done, total)
			}
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	packed := make(chan found, 1)
	go func() {
		h, err := c.history(ctx, r, base, o, later)
		packed <- found{h, err}
	}()
	files, err := c.Tree(ctx, r, tree, o, p)
	if err != nil {
		stop()
		<-packed
		return Layers{}, err
	}
	checkedOut.Store(true)
	h := <-packed
	if h.err != nil {
		return Layers{}, h.err
	}
	made := Layers{Dirs: files.Dirs(), Files: files}
	config := ""
	if files.hasModules() {
		if made.Modules, made.Notes, config, err = c.modules(ctx, r, tree, o, p); err != nil {
			return Layers{}, err
		}
		if made.Modules.Layer != "" {
			made.Dirs = append([]string{made.Modules.Layer}, made.Dirs...)
		}
	}
	git, err := c.git(ctx, r, h.history, files, o, config)
	made.Dirs = append(made.Dirs, git)
	return made, err
}

// Layers are what a workspace starts from.
type Layers struct {
	Dirs    []string // topmost first: submodules if there are any, the files, the history
	Files   Tree     // of the base's own tree
	Modules sandbox.Modules
	Notes   []string // submodules that stay empty, and what brings them
}

// git assembles the directory from the parts already made.
func (c Cache) git(ctx context.Context, r *git.Repository, h history, tree Tree, o git.Owner, modules string) (string, error) {
	s, err := r.Settings()
	if err != nil {
		return "", err
	}
	found, err := r.Rules(s)
	if err != nil {
		return "", err
	}
	monitor := ""
	if c.Monitor.Program != nil && countEntries(tree.Index) >= c.Monitor.Files {
		monitor = c.Monitor.Program()
	}
	layer := gitLayer{monitor: monitor, r: r, s: s, rules: found, history: h, tree: tree, owner: o, modules: modules}
	if remote := r.Partial(); remote != "" {
		url, err := r.Command("config", "--get", "remote."+remote+".url").Line(ctx)
		if err != nil && git.ExitCode(err) < 0 {
			return "", err
		}
		layer.origin = withoutSecrets(url)
	}
	dir, err := c.entry(ctx, "git", layer.key(), layer.verify, func(dir string, _ *os.File) error {
		return layer.build(filepath.Join(dir, "layer", ".git"))
	})
	return filepath.Join(dir, "layer"), err
}

type gitLayer struct {
	monitor string
	r       *git.Repository
	s       *git.Settings
	rules   git.Rules
	history history
	tree    Tree
	owner   git.Owner
	modules string // further lines of the configuration, about submodules
	origin  string // URL of the remote of a partial clone

	worktree string // core.worktree of a submodule's own git directory
}

// key names the commit and everything else that the layer's files depend on.
func (l gitLayer) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "3 %q %q %q %q %q", l.config(), l.exclude(), filepath.Base(filepath.Dir(l.tree.Index)),
		filepath.Base(l.history.dir), l.rules.Attributes)
	return l.history.base + "-" + repositoryHash(l.r) + "-" + hex.EncodeToString(h.Sum(nil)[:8]) + l.owner.Suffix()
}

func (l gitLayer) config() string {
	monitor := ""
	if l.monitor != "" {
		monitor = "	fsmonitor = " + QuoteConfig(l.monitor) + "\n	fsmonitorHookVersion = 2\n"
	}
	if l.worktree != "" {
		monitor += "\tworktree = " + QuoteConfig(l.worktree) + "\n"
	}
	return FormatConfig(l.r) + l.promise() + fmt.Sprintf(`[core]
	bare = false
	filemode = true
	logallrefupdates = true
	trustctime = false
	autocrlf = %s
	eol = %s
%s[gc]
	auto = 0
`, l.s.AutoCRLF(), l.s.Eol(), monitor) + l.modules
}

// promise says inside that objects may be missing, and which remote has them:
// without it git would take the repository for broken. The credentials to fetch
// them are not inside.
func (l gitLayer) promise() string {
	remote := l.r.Partial()
	if remote == "" || l.worktree != "" {
		return ""
	}
	return fmt.Sprintf("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialclone = %s\n[remote %s]\n\tpromisor = true\n\turl = %s\n",
		QuoteConfig(remote), quoteSection(remote), QuoteConfig(l.origin))
}

// index returns the index of the files without its checksum, and their paths where
// a monitor wants to know them. Then it says that none of them has changed since
// the monitor was last asked.
func (l gitLayer) index() (body []byte, paths []string, err error) {
	content, err := os.ReadFile(l.tree.Index)
	if err != nil {
		return nil, nil, err
	}
	size := git.NewHash(l.r.ObjectFormat).Size()
	if len(content) < size {
		return nil, nil, git.ErrIndex
	}
	body = content[:len(content)-size]
	if l.monitor == "" {
		return body, nil, nil
	}
	x, err := git.ParseIndex(content, l.r.ObjectFormat)
	if err != nil {
		return nil, nil, err
	}
	// The paths lie before what may be written over: the checksum.
	return append(body, neverChanged...), x.Paths, nil
}

// neverChanged is the index extension of a monitor (gitformat-index(5), "File
// System Monitor cache"): version 1, which every git since 2.16 reads; a time
// of 0; and an empty bitmap of the files to look at (EWAH: no bits, one empty
// word, the position of the last marker word).
var neverChanged = []byte("FSMN\x00\x00\x00\x24" + "\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x14" + "\x00\x00\x00\x00" + "\x00\x00\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00")

// exclude returns the user's ignore rules outside the tree, lowest priority first.
func (l gitLayer) exclude() string {
	return string(bytes.Join([][]byte{l.rules.ExcludesFile, l.rules.Exclude}, []byte("\n")))
}

func (l gitLayer) build(dotGit string) error {
	if err := l.fill(dotGit); err != nil {
		return err
	}
	if l.owner.Chown {
		return chownAll(filepath.Dir(dotGit), l.owner)
	}
	return nil
}

// fill writes the git directory.
func (l gitLayer) fill(dotGit string) error {
	refs, err := os.ReadFile(filepath.Join(l.history.dir, packedRefs))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot read the cached history of %s", l.history.base)
	}
	files := map[string]string{
		"config":          l.config(),
		"description":     "a litterbox sandbox\n",
		"info/exclude":    l.exclude(),
		"info/attributes": string(bytes.Join([][]byte{l.rules.AttributesFile, l.rules.Attributes}, []byte("\n"))),
		packedRefs:        string(refs),
	}
	if boundary, err := os.ReadFile(filepath.Join(l.history.dir, Shallow)); err == nil {
		files[Shallow] = string(boundary)
	}
	dirs := []string{"", "info", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags"}
	if err := makeDir(filepath.Dir(dotGit)); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := makeDir(filepath.Join(dotGit, dir)); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := writeReadable(filepath.Join(dotGit, name), []byte(content)); err != nil {
			return err
		}
	}
	paths, err := l.writeIndex(filepath.Join(dotGit, "index"))
	if err != nil {
		return err
	}
	if l.monitor != "" {
		base := fsmonitor.FormatBase(git.NewHash(l.r.ObjectFormat).Size(), paths)
		if err := writeReadable(filepath.Join(dotGit, fsmonitor.BaseFile), base); err != nil {
			return err
		}
	}
	if err := sharePacks(filepath.Join(l.history.dir, packs), filepath.Join(dotGit, "objects", "pack")); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot share the history of %s", l.history.base)
	}
	return nil
}

func writeReadable(path string, content []byte) error {
	err := os.WriteFile(path, content, 0o644)
	if err == nil {
		err = os.Chmod(path, 0o644)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
	}
	return nil
}

// writeIndex keeps the time of the index, which git compares with the times of
// the files to tell which of them may be racy.
func (l gitLayer) writeIndex(to string) (paths []string, err error) {
	body, paths, err := l.index()
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read the index of the cached tree")
	}
	info, err := os.Stat(l.tree.Index)
	if err == nil {
		err = git.WriteSummed(to, l.r.ObjectFormat, body)
	}
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot write %q", to)
	}
	return paths, nil
}

// verify checks an entry of an earlier boot. Its index must match the files,
// which may have been made again.
func (l gitLayer) verify(dir string) bool {
	dotGit := filepath.Join(dir, "layer", ".git")
	for _, name := range []string{"config", packedRefs} {
		if info, err := os.Stat(filepath.Join(dotGit, name)); err != nil || info.Size() == 0 {
			return false
		}
	}
	want, _, err := l.index()
	if err != nil {
		return false
	}
	h := git.NewHash(l.r.ObjectFormat)
	h.Write(want)
	index, err := os.ReadFile(filepath.Join(dotGit, "index"))
	return err == nil && bytes.Equal(index, h.Sum(want)) && verifyPacks(filepath.Join(dotGit, "objects", "pack"))
}
