package layer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// maxPacks is how many packs a history may have before it is packed again.
const maxPacks = 8

// The contents of an entry of the kind packs: a directory of the same name, the
// refs of the tags in it, and the boundary of a shallow clone, if it is one.
const (
	packs      = "packs"
	packedRefs = "packed-refs"
	Shallow    = "shallow"
)

// history is everything one commit reaches, as packs in the cache.
type history struct {
	base string // the commit
	dir  string // its entry
}

// history packs everything base reaches, unless it is cached.
func (c Cache) history(ctx context.Context, r *git.Repository, base string, o git.Owner, p Progress) (history, error) {
	if !git.IsOid(base) {
		return history{}, fault.New(fault.Invalid, "cannot pack %q: not an object id", base)
	}
	job := packing{r: r, base: base, owner: o, progress: p}
	dir, err := c.entry(ctx, packs, job.key(), verifyHistory, func(dir string, lock *os.File) error {
		return job.build(ctx, c, dir, lock)
	})
	return history{base, dir}, err
}

// packing is the work of packing one history.
type packing struct {
	r        *git.Repository
	base     string
	owner    git.Owner
	progress Progress
}

func (j packing) key() string {
	h := sha256.New()
	h.Write(j.boundary())
	return j.base + "-" + repositoryHash(j.r) + "-" + hex.EncodeToString(h.Sum(nil)[:8]) + j.owner.Suffix()
}

func repositoryHash(r *git.Repository) string {
	h := sha256.Sum256([]byte(r.CommonDir))
	return hex.EncodeToString(h[:8])
}

// boundary returns that of a shallow clone (git-clone(1) --depth).
func (j packing) boundary() []byte {
	content, err := os.ReadFile(filepath.Join(j.r.CommonDir, Shallow))
	if err != nil {
		return nil
	}
	return content
}

func (j packing) build(ctx context.Context, c Cache, dir string, lock *os.File) error {
	tags, err := j.tags(ctx)
	if err != nil {
		return err
	}
	refs := "# pack-refs with: peeled fully-peeled sorted \n" + j.base + " refs/litterbox/base\n" + tags.packed
	if err := writeReadable(filepath.Join(dir, packedRefs), []byte(refs)); err != nil {
		return err
	}
	if boundary := j.boundary(); boundary != nil {
		if err := writeReadable(filepath.Join(dir, Shallow), boundary); err != nil {
			return err
		}
	}
	into := filepath.Join(dir, packs)
	if err := makeDir(into); err != nil {
		return err
	}
	if err := j.pack(ctx, c, into, tags.oids, lock); err != nil {
		return err
	}
	if j.owner.Chown {
		return chownAll(into, j.owner)
	}
	return nil
}

type mergedTags struct {
	oids   []string
	packed string // lines of packed-refs
}

// noTags reports whether the repository surely has no tags: looking is cheaper
// than asking git.
func (j packing) noTags() bool {
	s, err := j.r.Settings()
	if err != nil || s.Values["extensions.refstorage"] != "" {
		return false
	}
	loose, err := os.ReadDir(filepath.Join(j.r.CommonDir, "refs", "tags"))
	if len(loose) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	packed, err := os.ReadFile(filepath.Join(j.r.CommonDir, packedRefs))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return !bytes.Contains(packed, []byte(" refs/tags/"))
}

// tags lists the tags whose commits base already contains.
func (j packing) tags(ctx context.Context) (mergedTags, error) {
	if j.noTags() {
		return mergedTags{}, nil
	}
	out, err := j.r.Command("for-each-ref", "--merged="+j.base,
		"--format=%(objectname) %(refname)%00%(*objectname)", "refs/tags").Output(ctx)
	if err != nil {
		return mergedTags{}, fault.Wrap(fault.Internal, err, "cannot list the tags of %s", j.base)
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
// shared by hard links and only new objects are packed.
func (j packing) pack(ctx context.Context, c Cache, dir string, tags []string, lock *os.File) error {
	revs := append([]string{j.base}, tags...)
	if ancestor, from := j.ancestor(ctx, c); ancestor != "" {
		if sharePacks(from, dir) == nil {
			revs = append(revs, "^"+ancestor)
		} else if err := emptyDir(dir); err != nil { // swept meanwhile
			return err
		}
	}
	k := j.r.Command("pack-objects", "--revs", "--delta-base-offset", "--non-empty", "-q", filepath.Join(dir, "pack"))
	// git writes a pack beside its objects first and renames it, which does not
	// work from one file system to another.
	odb := dir + ".odb"
	k.Trusted = true
	k.Env = []string{
		"GIT_OBJECT_DIRECTORY=" + odb, "GIT_PROGRESS_DELAY=0",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + QuoteConfig(filepath.Join(j.r.CommonDir, "objects")),
	}
	if err := makeDir(odb); err != nil {
		return err
	}
	if j.progress != nil {
		k.Args = append(k.Args[:len(k.Args)-2], "--progress", filepath.Join(dir, "pack"))
	}
	// Signatures of the pack's own files never matter to a reader of this
	// layer; without bitmaps of the host's packs the exact set is walked.
	k.Config = []string{"pack.useBitmaps=false", "pack.writeReverseIndex=false", "core.fsync=none"}
	if j.promised() {
		// What a partial clone left out stays out: a sandbox should not fetch
		// years of content that is never used.
		k.Args = append([]string{k.Args[0], "--missing=allow-promisor"}, k.Args[1:]...)
	}
	// Git stops reading at an empty line.
	k.Stdin, k.Files = strings.NewReader(strings.Join(revs, "\n")+"\n"), []*os.File{lock}
	k.Stdout = new(bytes.Buffer)
	if err := RunWithProgress(ctx, k, j.progress); err != nil {
		e := fault.Wrap(fault.Unavailable, err, "cannot pack the history of %s", j.base)
		if remote := j.r.Partial(); remote != "" {
			// From --filter=tree:0: git can leave out files here, but not directories.
			e = e.WithHint("git fetch --refetch --filter=blob:none %s   (this clone is partial: that brings the directories of older commits, which it may not have)", git.ShellWord(remote))
		}
		return e
	}
	made, err := filepath.Glob(filepath.Join(dir, "*.pack"))
	if err = errors.Join(err, os.RemoveAll(odb)); err != nil {
		return err
	}
	for _, pack := range made {
		// With a .keep, an inner `git gc` does not copy the whole history into
		// the sandbox's own directory.
		if err := writeReadable(strings.TrimSuffix(pack, ".pack")+".keep", nil); err != nil {
			return err
		}
		if j.promised() {
			if err := writeReadable(strings.TrimSuffix(pack, ".pack")+".promisor", nil); err != nil {
				return err
			}
		}
		for _, name := range []string{pack, strings.TrimSuffix(pack, ".pack") + ".idx"} {
			if err := os.Chmod(name, 0o444); err != nil {
				return fault.Wrap(fault.Unavailable, err, "cannot make %q readable", name)
			}
		}
	}
	return nil
}

// promised reports whether the clone is partial, so that objects promised by its
// remote may be missing (git's partial-clone.txt).
func (j packing) promised() bool { return j.r.Partial() != "" }

// ancestor finds the nearest commit of base's history whose own history is
// cached and consists of few packs. An entry that is not an ancestor is of no use,
// however near: its objects would expose another branch.
func (j packing) ancestor(ctx context.Context, c Cache) (oid, from string) {
	names, err := os.ReadDir(filepath.Join(c.Dir, packs))
	if err != nil {
		return "", ""
	}
	cached := map[string]string{}
	for _, n := range names {
		oid, rest, _ := strings.Cut(n.Name(), "-")
		dir := filepath.Join(c.Dir, packs, n.Name())
		if !strings.HasPrefix(rest, repositoryHash(j.r)+"-") || !strings.HasSuffix(rest, j.owner.Suffix()) ||
			oid == j.base || !complete(dir, verifyHistory) {
			continue
		}
		objects := filepath.Join(dir, packs)
		if found, err := filepath.Glob(filepath.Join(objects, "*.pack")); err == nil && len(found) < maxPacks {
			cached[oid] = objects
		}
	}
	if len(cached) == 0 {
		return "", ""
	}
	return j.nearest(ctx, cached)
}

// nearest reads base's history up to the first commit that is in cached.
func (j packing) nearest(ctx context.Context, cached map[string]string) (oid, from string) {
	if oid = j.nearestLoose(cached); oid != "" {
		return oid, cached[oid]
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := j.r.Command("rev-list", "--max-count=20000", j.base, "--")
	cmd, err := c.Cmd(ctx)
	if err != nil {
		return "", ""
	}
	runtime.LockOSThread() // as in Output
	defer runtime.UnlockOSThread()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", ""
	}
	wait, err := c.Start(cmd)
	if err != nil {
		return "", ""
	}
	for lines := bufio.NewScanner(out); oid == "" && lines.Scan(); {
		if found, ok := cached[lines.Text()]; ok {
			oid, from = lines.Text(), found
		}
	}
	stop()
	_ = wait() // killed when found; a history that cannot be read fails in pack-objects
	return oid, from
}

// nearestLoose looks without git, as far as commits are files of their own:
// those of the last days usually are.
func (j packing) nearestLoose(cached map[string]string) string {
	if j.boundary() != nil {
		return "" // a shallow clone's commits name parents that it does not have
	}
	at := []string{j.base}
	for n := 0; n < len(at) && n < 32; n++ {
		for _, parent := range j.r.ParentsOfLoose(at[n]) {
			if _, ok := cached[parent]; ok {
				return parent
			}
			at = append(at, parent)
		}
	}
	return ""
}

// sharePacks gives to the files of from: the same inodes, or copies where hard
// links are not possible.
func sharePacks(from, to string) error {
	names, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, n := range names {
		source, target := filepath.Join(from, n.Name()), filepath.Join(to, n.Name())
		err := os.Link(source, target)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = copyPack(source, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyPack(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chmod(to, 0o444))
}

func emptyDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot empty %q", dir)
	}
	return makeDir(dir)
}

// verifyHistory checks an entry of an earlier boot.
func verifyHistory(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, packedRefs))
	return err == nil && info.Size() > 0 && verifyPacks(filepath.Join(dir, packs))
}

// verifyPacks checks that every pack ends with the checksum that its index
// recorded for it (gitformat-pack(5)), so it was written to its end.
func verifyPacks(dir string) bool {
	made, err := filepath.Glob(filepath.Join(dir, "*.pack"))
	if err != nil || len(made) == 0 {
		return false
	}
	for _, pack := range made {
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
