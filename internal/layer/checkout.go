package layer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// Tree is one tree as files.
type Tree struct {
	Dir   string // the files; a read-only layer
	Below string // the layer below it, if Dir holds only the differences from that
	Index string // a git index that matches them, with the Owner's ids
	// Flatten says that too much was put on top of Below: time to call
	// [Cache.Flatten], when no one waits.
	Flatten bool
}

// Dirs returns the layers, topmost first.
func (t Tree) Dirs() []string {
	if t.Below == "" {
		return []string{t.Dir}
	}
	return []string{t.Dir, t.Below}
}

// trees is the kind of cache entry that holds one whole tree as files.
const trees = "trees"

// Tree returns the files of a tree, checked out once for all sandboxes: whole,
// or as the differences from a near cached one. Any number of processes may
// call it at the same time.
func (c Cache) Tree(ctx context.Context, r *git.Repository, tree string, o git.Owner, p Progress) (Tree, error) {
	job, err := newCheckout(r, tree, o, p)
	if err != nil {
		return Tree{}, err
	}
	made, isMade := c.madeDelta(job)
	if isMade && slices.Contains(c.Had, made.Dir) {
		return made, nil
	}
	if !complete(filepath.Join(c.Dir, trees, job.key()), git.VerifyTree(r.ObjectFormat)) {
		if isMade {
			return made, nil
		}
		if layer, ok := c.delta(ctx, job); ok {
			return layer, nil
		}
	}
	return c.whole(ctx, job)
}

// Flatten checks out whole, with idle resources only, a tree that so far is
// only a delta. From then on [Cache.Tree] returns that. While another tree is
// being flattened it does nothing.
func (c Cache) Flatten(ctx context.Context, r *git.Repository, tree string, o git.Owner) error {
	job, err := newCheckout(r, tree, o, nil)
	if err != nil {
		return err
	}
	job.idle = true
	lock, err := tryLockFile(filepath.Join(c.Dir, "flatten.lock"))
	if lock == nil || err != nil {
		return err
	}
	defer lock.Close()
	_, err = c.whole(ctx, job)
	return err
}

func (c Cache) whole(ctx context.Context, job checkout) (Tree, error) {
	dir, err := c.entry(ctx, trees, job.key(), git.VerifyTree(job.r.ObjectFormat), func(dir string, lock *os.File) error {
		return job.run(ctx, dir, lock)
	})
	if err != nil {
		return Tree{}, err
	}
	return Tree{Dir: filepath.Join(dir, "files"), Index: filepath.Join(dir, "index")}, nil
}

// checkout turns one tree into files.
type checkout struct {
	r          *git.Repository
	tree       string
	conversion conversion
	owner      git.Owner
	progress   Progress
	idle       bool
}

func newCheckout(r *git.Repository, tree string, o git.Owner, p Progress) (checkout, error) {
	if !git.IsOid(tree) {
		return checkout{}, fault.New(fault.Invalid, "cannot check out %q: not an object id", tree)
	}
	v, err := ConversionOf(r)
	return checkout{r: r, tree: tree, conversion: v, owner: o, progress: p}, err
}

// key names an entry: the tree and everything else its files depend on.
func (j checkout) key() string { return j.tree + j.suffix() }

func (j checkout) suffix() string { return "-" + j.conversion.hash() + j.owner.Suffix() }

// conversion is the data that decides how a blob becomes a file.
type conversion struct {
	autoCRLF, eol string
	attributes    []byte // core.attributesFile
	info          []byte // info/attributes
}

func ConversionOf(r *git.Repository) (conversion, error) {
	s, err := r.Settings()
	if err != nil {
		return conversion{}, err
	}
	found, err := r.Rules(s)
	return conversion{s.AutoCRLF(), s.Eol(), found.AttributesFile, found.Attributes}, err
}

func (v conversion) hash() string {
	h := sha256.New()
	fmt.Fprintf(h, "1 %s %s %d\n%s%s", v.autoCRLF, v.eol, len(v.attributes), v.attributes, v.info)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// run fills dir with files/ and index.
func (j checkout) run(ctx context.Context, dir string, lock *os.File) error {
	args := []string{"read-tree", "-u", "--reset"}
	if j.progress != nil {
		args = append(args, "-v")
	}
	files, index := filepath.Join(dir, "files"), filepath.Join(dir, "index")
	if err := j.git(ctx, dir, lock, nil, append(args, j.tree)...); err != nil {
		return err
	}
	if err := git.FinishIndex(ctx, files, index, j.r.ObjectFormat, j.owner); err != nil {
		return fault.Wrap(fault.Internal, err, "cannot prepare the index of %s", j.tree)
	}
	return j.giveDirectories(files)
}

// giveDirectories gives the directories to the owner, who has the files.
func (j checkout) giveDirectories(files string) error {
	if !j.owner.Chown {
		return nil
	}
	err := filepath.WalkDir(files, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return j.owner.Give(path)
	})
	if err != nil {
		return fault.Wrap(fault.Denied, err, "cannot give %q to uid %d", files, j.owner.UID)
	}
	return nil
}

// git runs the git command that writes files/ below dir, with the index there.
// It works in a private git directory of ours that borrows the host's objects:
// no filter, hook or monitor of any configuration exists there, so a
// filter=lfs attribute leaves the pointer.
func (j checkout) git(ctx context.Context, dir string, lock *os.File, stdin io.Reader, args ...string) error {
	view, files := filepath.Join(dir, "view.git"), filepath.Join(dir, "files")
	if err := MakeView(j.r, view, j.conversion); err != nil {
		return err
	}
	if err := makeDir(files); err != nil {
		return err
	}
	c := git.Command{
		GitDir: view, Dir: files, Private: true, Trusted: true, Umask: true, Files: []*os.File{lock}, Idle: j.idle, Stdin: stdin, Args: args,
		Env: []string{"GIT_WORK_TREE=" + files, "GIT_INDEX_FILE=" + filepath.Join(dir, "index"), "GIT_PROGRESS_DELAY=0"},
		Config: []string{
			// 0 means as many workers as there are processors (git 2.32).
			"checkout.workers=0", "checkout.thresholdForParallelism=100", "index.version=2", "core.trustctime=false",
		},
	}
	if err := RunWithProgress(ctx, c, j.progress); err != nil {
		e := fault.Wrap(fault.Unavailable, err, "cannot check out the tree %s", j.tree)
		if remote := j.r.Partial(); remote != "" {
			e = e.WithHint("git rev-list --objects --missing=print %s | sed -n 's/^?//p' | git fetch --no-write-fetch-head --stdin %s   (this clone is partial: that brings the files it does not have)",
				j.tree, git.ShellWord(remote))
		}
		return e
	}
	return os.RemoveAll(view)
}

// give gives the files to the owner.
func (j checkout) give(files string) error {
	if !j.owner.Chown {
		return nil
	}
	return chownAll(files, j.owner)
}

// MakeView makes a bare git directory that borrows the host's objects.
func MakeView(r *git.Repository, view string, v conversion) error {
	attributes := filepath.Join(view, "attributes")
	config := FormatConfig(r) + fmt.Sprintf("[core]\n\tbare = true\n\tautocrlf = %s\n\teol = %s\n\tattributesFile = %s\n",
		v.autoCRLF, v.eol, QuoteConfig(attributes))
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  config,
		"attributes":              string(v.attributes),
		"info/attributes":         string(v.info),
		"objects/info/alternates": filepath.Join(r.CommonDir, "objects") + "\n",
		"refs/.keep":              "",
	}
	for name, content := range files {
		path := filepath.Join(view, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot make %q", path)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
		}
	}
	return nil
}

// FormatConfig returns the part of a config file that says how objects are named.
func FormatConfig(r *git.Repository) string {
	if r.ObjectFormat == "sha256" {
		return "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n"
	}
	return "[core]\n\trepositoryformatversion = 0\n"
}

// QuoteConfig writes a value so that git-config(1) reads it back unchanged.
func QuoteConfig(v string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(v) + `"`
}

// makeDir makes one world-readable directory, whatever the umask.
func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", path)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q readable", path)
	}
	return nil
}

// RunWithProgress runs c and reports the counts git prints on standard error,
// for example "Updating files:  42% (6300/15000)".
func RunWithProgress(ctx context.Context, c git.Command, p Progress) error {
	cmd, err := c.Cmd(ctx)
	if err != nil {
		return err
	}
	meter := &progressWriter{report: p}
	cmd.Stderr = meter
	if cmd.Stdin == nil {
		cmd.Stdin = strings.NewReader("")
	}
	runtime.LockOSThread() // as in Output
	defer runtime.UnlockOSThread()
	wait, err := c.Start(cmd)
	if err != nil {
		return c.Failure(ctx, err, "")
	}
	if c.Idle {
		process.MakeIdle(cmd.Process.Pid)
	}
	return c.Failure(ctx, wait(), meter.rest.String())
}

type progressWriter struct {
	report  Progress
	rest    strings.Builder // the text that was not progress
	line    []byte
	pattern *regexp.Regexp // compiled when there is something to read
}

func (w *progressWriter) Write(b []byte) (int, error) {
	for _, c := range b {
		if c != '\r' && c != '\n' {
			w.line = append(w.line, c)
			continue
		}
		w.flush()
	}
	return len(b), nil
}

func (w *progressWriter) flush() {
	if w.pattern == nil && len(w.line) > 0 {
		w.pattern = regexp.MustCompile(`^([A-Za-z ]+): +\d+% \((\d+)/(\d+)\)`)
	}
	var m [][]byte
	if len(w.line) > 0 {
		m = w.pattern.FindSubmatch(w.line)
	}
	switch {
	case m == nil && w.rest.Len() < 64<<10:
		w.rest.Write(w.line)
		w.rest.WriteByte('\n')
	case m != nil && w.report != nil:
		done, _ := strconv.Atoi(string(m[2])) // digits by the pattern
		total, _ := strconv.Atoi(string(m[3]))
		w.report(string(m[1]), done, total)
	}
	w.line = w.line[:0]
}

func chownAll(root string, o git.Owner) error {
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, o.UID, o.GID)
	})
	if err != nil {
		return fault.Wrap(fault.Denied, err, "cannot give %q to uid %d", root, o.UID)
	}
	return nil
}
