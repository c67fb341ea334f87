package branch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// Received is the verified content of a pack.
type Received struct {
	Head    string // the head of the agent's history
	Commits []AgentCommit
	Notes   []string

	again func(context.Context) error // copies the objects to the host once more
	free  func()                      // lets a collection remove them
}

// release stops keeping the objects that no ref names yet.
func (r *Received) release() {
	if r != nil && r.free != nil {
		r.free()
	}
}

// restore brings back objects that a collection on the host has removed.
func (r *Received) restore(ctx context.Context) error {
	if r == nil || r.again == nil {
		return nil
	}
	return r.again(ctx)
}

func (r *Received) commits() []AgentCommit {
	if r == nil {
		return nil
	}
	return r.Commits
}

func (r *Received) notes() []string {
	if r == nil {
		return nil
	}
	return slices.Clone(r.Notes)
}

// Quarantine receives the packs of one sandbox: a private object directory
// whose only alternate is the layer the sandbox started from, never the host's
// own objects. It lives as long as the sandbox.
type Quarantine struct {
	Dir      string // made if missing; no sandbox can write to it
	GitLayer string // what Cache.Git returned
	GitDir   string // of a submodule: its git directory in the layer, instead of GitLayer
	Base     string
	State    string // the sandbox's delta file
	Limits   Limits // those of the import, which bind a pack's content, too
}

const (
	maxAgentCommits = 1000
	maxPack         = 2 << 30 // bytes
	maxTaken        = 64
)

// Receive takes a pack that a sandbox sent, whose newest commit is want; have
// is the commit taken last ([InnerHead]) or empty. The result goes into
// [ImportRequest]. The pack is hostile until proven otherwise: git's own
// checks run in the quarantine, then we verify every path of every tree, then
// only the trees' objects are copied to the host. On an error nothing has been
// copied; the import then goes without the agent's commits.
func Receive(ctx context.Context, r *git.Repository, q Quarantine, pack io.Reader, want, have string) (*Received, error) {
	return receive(ctx, r, q, pack, want, have, func(in intake) ([]string, error) { return in.remember(have) })
}

// receive is Receive; the commits that without returns were taken before.
func receive(ctx context.Context, r *git.Repository, q Quarantine, pack io.Reader, want, have string, without func(intake) ([]string, error)) (*Received, error) {
	if err := git.CheckOids(want, have, q.Base); err != nil {
		return nil, err
	}
	in := intake{r: r, q: q, c: git.Command{GitDir: q.Dir, Private: true}}
	if err := in.prepare(); err != nil {
		return nil, err
	}
	in.unkeep() // what a kill has left
	taken, err := without(in)
	if err != nil {
		return nil, err
	}
	had := in.packs()
	refuse := func(err error) error {
		return in.refuse(want, had, fault.Wrap("", err, "cannot take the agent's own commits"))
	}
	if err := in.index(ctx, pack); err != nil {
		return nil, refuse(err)
	}
	received := &Received{Head: want}
	received.free = in.unkeep
	received.again = func(ctx context.Context) error { return in.copy(ctx, received.Commits) }
	for _, step := range []func() error{
		func() error { return in.list(ctx, received, want, taken) },
		func() error { return in.parents(ctx, received.Commits) },
		func() error { return in.verify(ctx, received.Commits) },
		func() error {
			return git.DespiteCollection(ctx, func(bool) error { return in.copy(ctx, received.Commits) })
		},
	} {
		if err := step(); err != nil {
			return nil, refuse(err)
		}
	}
	return received, nil
}

// intake is one call of Receive.
type intake struct {
	r *git.Repository
	q Quarantine
	c git.Command // a git process in the quarantine
}

func (in intake) git(args ...string) git.Command {
	c := in.c
	c.Args = args
	return c
}

func (in intake) prepare() error {
	config := filepath.Join(in.q.GitLayer, ".git")
	if in.q.GitDir != "" {
		config = in.q.GitDir
	}
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"config":                  layer.FormatConfig(in.r) + "[core]\n\tbare = true\n",
		"objects/info/alternates": filepath.Join(config, "objects") + "\n",
		"objects/pack/.keep":      "",
		"refs/.keep":              "",
	}
	if shallow, err := os.ReadFile(filepath.Join(config, "shallow")); err == nil {
		files["shallow"] = string(shallow)
	}
	in.sweep()
	for name, content := range files {
		path := filepath.Join(in.q.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot make %q", path)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
		}
	}
	return nil
}

// remember keeps a list of the heads taken so far: after a switch between
// branches inside, earlier commits are not taken again.
func (in intake) remember(have string) ([]string, error) {
	path := filepath.Join(in.q.Dir, "taken")
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read %q", path)
	}
	taken := strings.Fields(string(content))
	if have == "" || have == in.q.Base || slices.Contains(taken, have) {
		return taken, nil
	}
	taken = append(taken, have)
	taken = taken[max(0, len(taken)-maxTaken):]
	if err := os.WriteFile(path, []byte(strings.Join(taken, "\n")+"\n"), 0o644); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
	}
	return taken, nil
}

// index checks the pack itself, then has git check it (fsck and connectivity).
func (in intake) index(ctx context.Context, pack io.Reader) error {
	buffered := bufio.NewReader(pack)
	if _, err := buffered.Peek(1); errors.Is(err, io.EOF) {
		return nil // the agent went back to a commit that is known
	}
	spool, err := os.CreateTemp(in.q.Dir, "pack-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot store a pack")
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot store a pack")
	}
	size, err := io.Copy(spool, io.LimitReader(contextReader{ctx, buffered}, maxPack+1))
	if err != nil {
		return fault.Wrap("", err, "cannot store a pack")
	}
	if size > maxPack {
		return tooLarge("the pack is larger than %d bytes", maxPack)
	}
	limits := in.q.Limits.withDefaults()
	content := contextReader{ctx, io.NewSectionReader(spool, 0, size)}
	if err := checkPack(content, in.r.HexLen()/2, packLimits{limits.FileSize, limits.Commit, maxPackObjects}); err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot read a pack")
	}
	// badFilemode (a setuid bit in a tree) is otherwise only reported, and diff-tree
	// shows the mode that git makes of it. Each thread holds deltas of its own.
	c := in.git("index-pack", "--strict=badFilemode=error", "--fix-thin", "--stdin", "--threads=1", "--max-input-size="+strconv.Itoa(maxPack))
	c.Stdin = spool
	_, err = c.Output(ctx)
	var said *git.Failure
	if errors.As(err, &said) && said.Disk == nil {
		return fault.Wrap(fault.Denied, err, "git refuses the pack")
	}
	return err
}

// list reads the new commits, oldest first. After an amend, a rebase or a
// reset those are simply the ones not taken before.
func (in intake) list(ctx context.Context, received *Received, want string, taken []string) error {
	c := in.git("rev-list", "--first-parent", "--reverse", "--max-count="+strconv.Itoa(maxAgentCommits+1), "--stdin")
	c.Stdin = strings.NewReader(want + "\n^" + in.q.Base + "\n^" + strings.Join(append(taken, in.q.Base), "\n^") + "\n")
	out, err := c.Output(ctx)
	if err != nil {
		return err
	}
	oids := strings.Fields(string(out))
	if len(oids) > maxAgentCommits {
		oids = oids[1:]
		received.Notes = append(received.Notes,
			fmt.Sprintf("only the last %d of the agent's own commits stand on the branch", maxAgentCommits))
	}
	if len(oids) == 0 {
		return nil
	}
	c = in.git("cat-file", "--batch")
	c.Stdin = strings.NewReader(strings.Join(oids, "\n") + "\n")
	if out, err = c.Output(ctx); err != nil {
		return err
	}
	received.Commits, err = parseCommits(out, len(oids))
	return err
}

func (in intake) parents(ctx context.Context, commits []AgentCommit) error {
	var trees []string
	for _, c := range commits {
		if c.ParentTree == "" {
			c.ParentTree = in.r.EmptyTree()
		}
		trees = append(trees, c.ParentTree+"^{tree}")
	}
	if len(commits) == 0 {
		return nil
	}
	found, err := in.git().LookUp(ctx, trees)
	if err != nil {
		return err
	}
	for n := range commits {
		if found[n].Kind != "tree" {
			return fault.New(fault.Denied, "cannot find the parent of the commit %s", commits[n].Oid)
		}
		commits[n].ParentTree = found[n].Oid
	}
	return nil
}

// verify checks every path of every tree, each tree compared with the one
// before and the first with the base, so that nothing is missed.
func (in intake) verify(ctx context.Context, commits []AgentCommit) error {
	before := in.q.Base + "^{tree}"
	if len(commits) == 0 {
		return nil
	}
	base, err := in.git("rev-parse", "--verify", before).Line(ctx)
	if err != nil {
		return err
	}
	if err := in.Expand(ctx, base, commits); err != nil {
		return err
	}
	var pairs strings.Builder
	for _, c := range commits {
		fmt.Fprintf(&pairs, "%s %s\n", base, c.Tree)
		base = c.Tree
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := in.git("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=none")
	c.Stdin = strings.NewReader(pairs.String())
	check := &git.PathCheck{Stop: stop}
	c.Stdout = check
	_, err = c.Output(ctx)
	if check.Err != nil {
		return check.Err
	}
	return err
}

// copy moves the trees' objects into the host's store.
func (in intake) copy(ctx context.Context, commits []AgentCommit) error {
	if len(commits) == 0 {
		return nil
	}
	var revs strings.Builder
	for _, c := range commits {
		revs.WriteString(c.Tree + "\n")
	}
	base, err := in.git("rev-parse", "--verify", in.q.Base+"^{tree}").Line(ctx)
	if err != nil {
		return err
	}
	revs.WriteString("^" + base + "\n")
	return in.send(ctx, revs.String(), []string{"core.fsync=none"})
}

// send copies what revs name from the quarantine to the host's store.
func (in intake) send(ctx context.Context, revs string, config []string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot copy objects")
	}
	defer read.Close()
	sent := make(chan error, 1)
	go func() {
		defer write.Close()
		c := in.git("pack-objects", "--revs", "--stdout", "--delta-base-offset", "-q")
		c.Modest = true
		c.Stdin, c.Stdout = strings.NewReader(revs), write
		_, err := c.Output(ctx)
		sent <- err
	}()
	// Nothing names these objects before the branch does: without a .keep the
	// user's repack drops them, and the branch would name missing objects.
	c := in.r.Command("index-pack", "--stdin", "--keep=litterbox", "--threads=1")
	c.Config, c.Stdin = config, read
	out, err := c.Output(ctx)
	if err != nil {
		_ = read.Close() // so that the sender ends
	}
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	return in.note(string(out))
}

// keptFile lists, in the quarantine, the packs on the host that have a .keep.
const keptFile = "kept"

// unkeep removes the .keep of every pack that was copied.
func (in intake) unkeep() {
	path := filepath.Join(in.q.Dir, keptFile)
	list, err := os.ReadFile(path)
	if err != nil {
		return
	}
	for name := range strings.FieldsSeq(string(list)) {
		if git.IsOid(name) {
			_ = os.Remove(in.r.PackPath("pack-"+name, ".keep")) // already gone, or it costs a collection some space
		}
	}
	_ = os.Remove(path)
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", path)
	}
	return nil
}

// note remembers the pack that index-pack left, "keep\t<hash>", or "pack\t<hash>"
// if it was there before, and tells Consolidate about it.
func (in intake) note(out string) error {
	_, name, ok := strings.Cut(strings.TrimSpace(out), "\t")
	if !ok || !git.IsOid(name) {
		return nil
	}
	if err := appendLine(filepath.Join(in.q.Dir, keptFile), name); err != nil || in.q.State == "" {
		return err
	}
	return appendLine(in.q.State+git.PacksSuffix, in.r.PackPath("pack-"+name, ".pack")+": ")
}
