package branch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxPacks is how many packs a history may consist of before it is packed anew.
const maxPacks = 8

// Git gives a directory that holds only .git: the history of base as a
// read-only layer, without HEAD, which is each sandbox's own ([PrepareUpper]).
// Its objects are those reachable from base and from the tags merged into it,
// never the host's object directory: through that, stashes, other branches and
// reset secrets could be read. It may be called concurrently.
func (c Cache) Git(ctx context.Context, r *Repository, base string, tree TreeLayer, o Owner, p Progress) (string, error) {
	if !isOid(base) {
		return "", fault.New(fault.Invalid, "cannot pack %q: not an object id", base)
	}
	s, err := r.settings()
	if err != nil {
		return "", err
	}
	found, err := r.rules(s)
	if err != nil {
		return "", err
	}
	layer := gitLayer{r: r, s: s, rules: found, base: base, tree: tree, owner: o, progress: p}
	dir, err := c.entry(ctx, "git", layer.key(), verifyGit, func(dir string, lock *os.File) error {
		return layer.build(ctx, c, filepath.Join(dir, "layer", ".git"), lock)
	})
	return filepath.Join(dir, "layer"), err
}

type gitLayer struct {
	r        *Repository
	s        *settings
	rules    rules
	base     string
	tree     TreeLayer
	owner    Owner
	progress Progress
}

// key names the commit and everything else that the layer's files depend on.
func (l gitLayer) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "1 %q %q %q %q %q", l.config(), l.exclude(), filepath.Base(filepath.Dir(l.tree.Index)), l.shallow(),
		l.rules.attributes)
	return l.base + "-" + l.repositoryHash() + "-" + hex.EncodeToString(h.Sum(nil)[:8]) + l.owner.suffix()
}

func (l gitLayer) repositoryHash() string {
	h := sha256.Sum256([]byte(l.r.CommonDir))
	return hex.EncodeToString(h[:8])
}

func (l gitLayer) config() string {
	return l.r.formatConfig() + fmt.Sprintf(`[core]
	bare = false
	filemode = true
	logallrefupdates = true
	trustctime = false
	autocrlf = %s
	eol = %s
[gc]
	auto = 0
`, l.s.autoCRLF(), l.s.eol())
}

// exclude is the user's ignore rules outside of the tree, lowest priority first.
func (l gitLayer) exclude() string {
	return string(bytes.Join([][]byte{l.rules.excludesFile, l.rules.exclude}, []byte("\n")))
}

// shallow is the boundary of a shallow clone (git-clone(1) --depth).
func (l gitLayer) shallow() []byte {
	content, err := os.ReadFile(filepath.Join(l.r.CommonDir, "shallow"))
	if err != nil {
		return nil
	}
	return content
}

func (l gitLayer) build(ctx context.Context, c Cache, dotGit string, lock *os.File) error {
	tags, err := l.tags(ctx)
	if err != nil {
		return err
	}
	packedRefs := "# pack-refs with: peeled fully-peeled sorted \n" + l.base + " refs/litterbox/base\n" + tags.packed
	files := map[string]string{
		"config":          l.config(),
		"description":     "a litterbox sandbox\n",
		"info/exclude":    l.exclude(),
		"info/attributes": string(bytes.Join([][]byte{l.rules.attributesFile, l.rules.attributes}, []byte("\n"))),
		"packed-refs":     packedRefs,
	}
	if shallow := l.shallow(); shallow != nil {
		files["shallow"] = string(shallow)
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
	if err := copyIndex(l.tree.Index, filepath.Join(dotGit, "index")); err != nil {
		return err
	}
	if err := l.pack(ctx, c, filepath.Join(dotGit, "objects", "pack"), tags.oids, lock); err != nil {
		return err
	}
	if l.owner.Chown {
		return chownAll(filepath.Dir(dotGit), l.owner)
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

// copyIndex keeps the time of the index, which git compares with the times of
// the files to tell which of them may be racy.
func copyIndex(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot read the index of the cached tree")
	}
	info, err := os.Stat(from)
	if err == nil {
		err = errors.Join(writeReadable(to, content), os.Chtimes(to, info.ModTime(), info.ModTime()))
	}
	return err
}

type mergedTags struct {
	oids   []string
	packed string // lines of packed-refs
}

// tags lists the tags whose commits base already contains.
func (l gitLayer) tags(ctx context.Context) (mergedTags, error) {
	out, err := l.r.git("for-each-ref", "--merged="+l.base,
		"--format=%(objectname) %(refname)%00%(*objectname)", "refs/tags").output(ctx)
	if err != nil {
		return mergedTags{}, fault.Wrap(fault.Internal, err, "cannot list the tags of %s", l.base)
	}
	var t mergedTags
	for line := range strings.Lines(string(out)) {
		ref, peeled, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
		oid, _, _ := strings.Cut(ref, " ")
		t.oids = append(t.oids, oid)
		t.packed += ref + "\n"
		if peeled != "" {
			t.packed += "^" + peeled + "\n"
		}
	}
	return t, nil
}

// pack fills dir. Where the history of an ancestor is cached, its packs are
// shared by hard link and only what is new is packed.
func (l gitLayer) pack(ctx context.Context, c Cache, dir string, tags []string, lock *os.File) error {
	revs := l.base + "\n" + strings.Join(tags, "\n") + "\n"
	if ancestor, from := l.ancestor(ctx, c); ancestor != "" {
		if linkPacks(from, dir) == nil {
			revs += "^" + ancestor + "\n"
		} else if err := emptyDir(dir); err != nil { // swept meanwhile, or no hard links here
			return err
		}
	}
	k := l.r.git("pack-objects", "--revs", "--delta-base-offset", "--non-empty", "-q", filepath.Join(dir, "pack"))
	if l.progress != nil {
		k.args = append(k.args[:len(k.args)-2], "--progress", filepath.Join(dir, "pack"))
		k.env = []string{"GIT_PROGRESS_DELAY=0"}
	}
	// Signatures of the pack's own files never matter to a reader of this
	// layer; without bitmaps of the host's packs the exact set is walked.
	k.config = []string{"pack.useBitmaps=false", "pack.writeReverseIndex=false", "core.fsync=none"}
	k.stdin, k.files = strings.NewReader(revs), []*os.File{lock}
	k.stdout = new(bytes.Buffer)
	if err := runWithProgress(ctx, k, l.progress); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot pack the history of %s", l.base)
	}
	packs, err := filepath.Glob(filepath.Join(dir, "*.pack"))
	if err != nil {
		return err
	}
	for _, pack := range packs {
		// With a .keep, an inner `git gc` does not copy the whole history into
		// the sandbox's own directory.
		if err := writeReadable(strings.TrimSuffix(pack, ".pack")+".keep", nil); err != nil {
			return err
		}
		for _, name := range []string{pack, strings.TrimSuffix(pack, ".pack") + ".idx"} {
			if err := os.Chmod(name, 0o444); err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot make %q readable", name)
			}
		}
	}
	return nil
}

// ancestor finds the nearest commit of base's history whose layer is cached
// and consists of few packs. An entry that is no ancestor is of no use, however
// near: its objects would show another branch.
func (l gitLayer) ancestor(ctx context.Context, c Cache) (oid, packs string) {
	names, err := os.ReadDir(filepath.Join(c.Dir, "git"))
	if err != nil {
		return "", ""
	}
	cached := map[string]string{}
	for _, n := range names {
		oid, rest, _ := strings.Cut(n.Name(), "-")
		dir := filepath.Join(c.Dir, "git", n.Name())
		if !strings.HasPrefix(rest, l.repositoryHash()+"-") || !strings.HasSuffix(rest, l.owner.suffix()) ||
			oid == l.base || !complete(dir, verifyGit) {
			continue
		}
		objects := filepath.Join(dir, "layer", ".git", "objects", "pack")
		if found, err := filepath.Glob(filepath.Join(objects, "*.pack")); err == nil && len(found) < maxPacks {
			cached[oid] = objects
		}
	}
	if len(cached) == 0 {
		return "", ""
	}
	return l.nearest(ctx, cached)
}

// nearest reads base's history up to the first commit that is in cached.
func (l gitLayer) nearest(ctx context.Context, cached map[string]string) (oid, packs string) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cmd, err := l.r.git("rev-list", "--max-count=20000", l.base, "--").command(ctx)
	if err != nil {
		return "", ""
	}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return "", ""
	}
	for lines := bufio.NewScanner(out); oid == "" && lines.Scan(); {
		if found, ok := cached[lines.Text()]; ok {
			oid, packs = lines.Text(), found
		}
	}
	stop()
	_ = cmd.Wait() // killed when found; a history that cannot be read fails in pack-objects
	return oid, packs
}

func linkPacks(from, to string) error {
	names, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := os.Link(filepath.Join(from, n.Name()), filepath.Join(to, n.Name())); err != nil {
			return err
		}
	}
	return nil
}

func emptyDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot empty %q", dir)
	}
	return makeDir(dir)
}

// verifyGit checks that every pack ends with the checksum that its index
// recorded for it (gitformat-pack(5)), so it was written to its end.
func verifyGit(dir string) bool {
	dotGit := filepath.Join(dir, "layer", ".git")
	packs, err := filepath.Glob(filepath.Join(dotGit, "objects", "pack", "*.pack"))
	if err != nil || len(packs) == 0 {
		return false
	}
	for _, name := range []string{"config", "index", "packed-refs"} {
		if info, err := os.Stat(filepath.Join(dotGit, name)); err != nil || info.Size() == 0 {
			return false
		}
	}
	for _, pack := range packs {
		size := len(filepath.Base(pack)) - len("pack-.pack")
		if size != 40 && size != 64 {
			return false
		}
		size /= 2
		want, err := readTail(strings.TrimSuffix(pack, ".pack")+".idx", 2*size)
		if err != nil {
			return false
		}
		if got, err := readTail(pack, size); err != nil || !bytes.Equal(got, want[:size]) {
			return false
		}
	}
	return true
}

func readTail(path string, n int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tail := make([]byte, n)
	_, err = f.ReadAt(tail, info.Size()-int64(n))
	return tail, err
}
