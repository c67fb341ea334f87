package branch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// ImportRequest asks for one commit of the present files of a sandbox.
type ImportRequest struct {
	Branch        string // short name
	Workspace     workspace.Workspace
	State         string // path of the sandbox's delta file; its directory exists
	Base          string // commit the layers hold
	Last          string // commit of the last iteration; used when State is lost
	Author        git.Signature
	Subject       string
	Body          string
	Trailers      []Trailer
	Secrets       redact.Secrets    // those that messages must not show
	Agent         *Received         // the agent's own commits, which come first
	Modules       map[string]string // the commits of submodules inside, by path, as the host has them
	OnlyIfChanged bool              // no commit if the tree stays the same
	Preview       bool              // a commit that no ref points at; nothing is recorded
	Strict        bool              // flush everything to disk
	Limits        Limits
}

// ImportResult is the outcome.
type ImportResult struct {
	Commit  string      // the branch's tip, or the previewed commit
	Tree    string      // its tree
	Written bool        // false only with OnlyIfChanged
	Agent   []string    // the agent's commits as they are on the branch, oldest first
	Changed int         // paths that differ from the iteration before
	Notes   []string    // what was left out, and why
	Left    Left        // what was left out although it is not ignored
	Apart   bool        // the branch holds others' commits that the sandbox's files lack
	Packing git.Packing // whether it is time to call Consolidate
	Paths   []string    // the first of them, sorted
}

// Import commits a sandbox's changes on top of its branch, while the sandbox may
// be running and hostile. Others may have committed to the branch meanwhile:
// only what the sandbox changed since the last iteration is applied. The caller
// holds the sandbox's lock. It fails with NotFound if the branch is gone.
func Import(ctx context.Context, r *git.Repository, q ImportRequest) (ImportResult, error) {
	if err := errors.Join(git.CheckRef(q.Branch), git.CheckOids(q.Base, q.Last)); err != nil {
		return ImportResult{}, err
	}
	var result ImportResult
	defer q.Agent.release()
	err := git.DespiteCollection(ctx, func(again bool) error {
		if again {
			r.DropKeeps()
			// The agent's own commits may have gone with the rest.
			if err := q.Agent.restore(ctx); err != nil {
				return err
			}
		}
		var err error
		result, err = importOnce(ctx, r, q)
		return err
	})
	return result, err
}

func importOnce(ctx context.Context, r *git.Repository, q ImportRequest) (ImportResult, error) {
	for attempt := 0; ; attempt++ {
		i := &importer{r: r, q: q, ref: git.Heads + q.Branch}
		if q.Preview {
			i.ref = git.PreviewRefs + q.Branch
		}
		result, err := i.run(ctx)
		var lock *git.LockedError
		if errors.As(err, &lock) && attempt < 3 {
			if err = r.AwaitLock(ctx, lock); err == nil {
				continue
			}
		}
		if err == nil || attempt == 3 || !errors.Is(err, git.ErrMoved) {
			if err == nil {
				return result, nil
			}
			return result, i.explain(ctx, err)
		}
	}
}

// importer is one attempt of one import.
type importer struct {
	r   *git.Repository
	q   ImportRequest
	ref string
	old *delta
	now *present
	fi  *git.FastImport // nil until startImport

	base base // what the workspace is compared with

	agent  map[string]git.TreeDiff // what the agent's commits changed since the last iteration
	active bool                    // the tip is as the last iteration left it: no one else committed
	result ImportResult

	parentTree string // of the commit under way, before its edits
}

func (i *importer) run(ctx context.Context) (ImportResult, error) {
	var err error
	if i.old, err = currentOrRebuilt(ctx, i.r, i.q); err != nil {
		return i.result, err
	}
	defer func() {
		if i.fi != nil {
			i.fi.Stop()
		}
		if i.base.layers != nil {
			i.base.layers.Close()
		}
	}()
	if !i.q.OnlyIfChanged { // git starts while files are read
		if err := i.startImport(ctx); err != nil {
			return i.result, err
		}
	}
	if err := i.agentChanges(ctx); err != nil {
		return i.result, err
	}
	if err := i.scan(ctx); err != nil {
		return i.result, err
	}
	if err := i.commits(ctx); err != nil {
		return i.result, err
	}
	return i.result, i.record()
}

// startImport starts git fast-import, unless it runs.
func (i *importer) startImport(ctx context.Context) (err error) {
	if i.fi != nil {
		return nil
	}
	if i.fi = i.r.TakeSpare(i.edges(), i.q.Strict); i.fi == nil {
		i.fi, err = i.r.StartFastImport(ctx, i.edges(), i.q.Strict)
	}
	return err
}

func (i *importer) scan(ctx context.Context) error {
	w, err := i.scanner(ctx, func(size int64, content io.Reader) error {
		if err := i.startImport(ctx); err != nil {
			return err
		}
		return i.fi.Blob(size, content)
	})
	if err != nil {
		return err
	}
	for path, c := range i.agent {
		switch oid, err := hex.DecodeString(c.NewOid); {
		case err != nil:
			return fault.Wrap(fault.Internal, err, "cannot read what git diff-tree printed")
		case c.NewMode == git.ModeGitlink:
			w.gitlinks[path] = layer.File{Mode: git.ModeGitlink, Oid: string(oid)}
		case c.NewMode != 0:
			w.forced[path] = struct{}{}
		}
	}
	for path, commit := range i.q.Modules {
		oid, err := hex.DecodeString(commit)
		if err != nil || len(oid) != git.NewHash(i.r.ObjectFormat).Size() {
			return fault.New(fault.Invalid, "cannot use %q as an object id", commit)
		}
		w.modules[path] = layer.File{Mode: git.ModeGitlink, Oid: string(oid)}
	}
	i.now, err = w.run(ctx)
	return err
}

// scanner prepares a scan that passes new blobs to emit.
func (i *importer) scanner(ctx context.Context, emit sink) (*scan, error) {
	s, err := i.r.Settings()
	if err != nil {
		return nil, err
	}
	found, err := i.r.Rules(s)
	if err != nil {
		return nil, err
	}
	var options []attribute.Option
	if s.Truth("core.ignorecase") {
		options = append(options, attribute.IgnoreCase)
	}
	if i.base, err = openBase(ctx, i.r, i.q.Workspace.Base()); err != nil {
		return nil, err
	}
	return &scan{
		base: i.base, workspace: i.q.Workspace, old: i.old, limits: i.q.Limits, format: i.r.ObjectFormat,
		spoolDir: filepath.Dir(i.q.State), emit: emit,
		ignore:     ignore.NewStack(s.Truth("core.ignorecase"), found.ExcludesFile, found.Exclude),
		excluded:   workspace.Rules{Fold: s.Truth("core.ignorecase"), Texts: [][]byte{found.ExcludesFile, found.Exclude}},
		attributes: attribute.NewStack(found.AttributesFile, found.Attributes, options...),
		settings:   attribute.Settings{AutoCRLF: s.AutoCRLF(), EOL: s.Eol(), LFS: s.Values["filter.lfs.clean"] != "" || s.Values["filter.lfs.process"] != ""},
		convert:    s.AutoCRLF() != "false" || len(found.AttributesFile)+len(found.Attributes) > 0,
		forced:     map[string]struct{}{}, gitlinks: map[string]layer.File{}, modules: map[string]layer.File{},
		storedCRLF: func(path string) bool { return i.storedCRLF(ctx, path) },
		largeFile:  func(content []byte) error { return storeLargeFile(i.r, s, content) },
		blobSize:   func(oid string) int64 { return i.blobSize(ctx, oid) },
	}, nil
}

// storedCRLF looks at the blob last committed; it is called for few files.
func (i *importer) storedCRLF(ctx context.Context, path string) bool {
	blob, err := i.r.Command("cat-file", "blob", i.old.last+":"+path).Output(ctx)
	return err == nil && attribute.HasCRLF(blob)
}

// blobSize is called when a sparse file changed whose size a rebuilt delta
// does not know.
func (i *importer) blobSize(ctx context.Context, oid string) int64 {
	said, err := i.r.Command("cat-file", "-s", hex.EncodeToString([]byte(oid))).Line(ctx)
	if err != nil {
		return 0
	}
	size, _ := strconv.ParseInt(said, 10, 64) // 0 means unknown
	return size
}

// commits writes the agent's commits and the iteration's own.
func (i *importer) commits(ctx context.Context) error {
	if i.q.OnlyIfChanged && len(i.agent) == 0 && i.unchanged() {
		return i.unwritten(ctx)
	}
	if err := i.startImport(ctx); err != nil {
		return err
	}
	if i.old.lastTree == "" {
		answers, err := i.fi.Ask(git.ListQuery(i.old.last, ""))
		if err != nil {
			return err
		}
		i.old.lastTree = answers[0].Oid
	}
	parent := git.Heads + i.q.Branch + "^0"
	for _, c := range i.q.Agent.commits() {
		oid, err := i.agentCommit(ctx, c, parent)
		if err != nil {
			return err
		}
		i.result.Agent = append(i.result.Agent, oid)
		parent = ":1" // the branch as it now stands
	}
	if err := i.fi.Begin(i.ref, i.q.Author, i.q.Author, i.message(), parent); err != nil {
		return err
	}
	before, err := i.fi.Ask(`ls ""`)
	if err != nil {
		return err
	}
	if len(i.q.Agent.commits()) == 0 {
		i.active = !i.old.shared && before[0].Oid == i.old.lastTree
	}
	i.parentTree = before[0].Oid
	edits, err := i.edits()
	if err != nil {
		return err
	}
	if err := i.apply(ctx, edits); err != nil {
		return err
	}
	after, err := i.fi.Ask(`ls ""`)
	if err != nil {
		return err
	}
	i.result.Changed = len(edits) + len(i.agent)
	for _, e := range edits {
		if _, both := i.agent[e.Path]; both {
			i.result.Changed--
		}
	}
	i.result.Paths = firstPaths(edits, i.agent)
	i.result.Tree, i.result.Written = after[0].Oid, true
	if i.result.Commit, err = i.fi.End(); err != nil {
		return err
	}
	if i.q.OnlyIfChanged && len(i.result.Agent) == 0 && after[0].Oid == before[0].Oid {
		i.fi.Reset(i.ref, git.Heads+i.q.Branch+"^0")
		return i.unwritten(ctx)
	}
	return nil
}

// maxPaths is how many changed paths a result names.
const maxPaths = 100

func firstPaths(edits []git.Edit, agent map[string]git.TreeDiff) []string {
	paths := slices.Collect(maps.Keys(agent))
	for _, e := range edits {
		if _, both := agent[e.Path]; !both {
			paths = append(paths, e.Path)
		}
	}
	slices.Sort(paths)
	return paths[:min(len(paths), maxPaths)]
}

// unchanged reports, without asking git, that nothing can have changed.
func (i *importer) unchanged() bool {
	same := func(a, b layer.File) bool { return a.Mode == b.Mode && a.Oid == b.Oid }
	return maps.EqualFunc(i.now.files, i.old.files, same) && maps.Equal(i.now.gone, i.old.gone)
}

func (i *importer) unwritten(ctx context.Context) error {
	if i.old.lastTree != "" && i.r.GlanceTip(i.q.Branch) == i.old.last {
		i.result = ImportResult{Commit: i.old.last, Tree: i.old.lastTree}
		return nil
	}
	tip, tree, err := i.r.Resolve(ctx, git.Heads+i.q.Branch)
	i.result = ImportResult{Commit: tip, Tree: tree}
	return err
}

// edges returns the file in which git notes the packs it wrote for this sandbox.
func (i *importer) edges() string {
	if i.q.Preview {
		return ""
	}
	return i.q.State + git.PacksSuffix
}

// record moves the branch and the delta together.
func (i *importer) record() error {
	next := &delta{
		base: i.old.base, last: i.result.Commit, lastTree: i.result.Tree, inner: i.old.inner,
		files: i.now.files, gone: i.now.gone, released: i.old.released,
	}
	if i.q.Agent != nil && i.q.Agent.Head != "" {
		next.inner = i.q.Agent.Head
	}
	i.result.Notes = append(i.q.Agent.notes(), i.now.notes.List()...)
	i.result.Left = i.now.left
	if where := checkedOutAt(i.r, i.q.Branch); where != "" && i.result.Written && !i.q.Preview {
		i.result.Notes = append(i.result.Notes, fmt.Sprintf(
			"the branch %q is checked out in %q: the files there do not follow (git -C %q reset --keep)", i.q.Branch, where, where))
	}
	if i.q.Preview {
		i.fi.Reset(i.ref, i.r.Zero())
		return i.fi.Finish()
	}
	next.shared = !i.active
	i.result.Apart = next.shared
	if !i.result.Written {
		next.last, next.lastTree, next.shared = i.old.last, i.old.lastTree, i.old.shared
	}
	if err := next.stage(i.q.State, i.q.Strict); err != nil {
		return err
	}
	if i.fi != nil {
		if err := i.fi.Finish(); err != nil {
			return err
		}
		i.result.Packing = i.r.Written(i.q.State)
	}
	return commitStaged(i.q.State)
}

// explain finds out why git refused.
func (i *importer) explain(ctx context.Context, err error) error {
	if _, tipErr := i.r.Tip(ctx, i.q.Branch); fault.KindOf(tipErr) == fault.NotFound {
		return fault.Wrap(fault.NotFound, tipErr, "cannot commit").WithHint("litterbox reattach")
	}
	return fault.Wrap("", err, "cannot commit to the branch %q", i.q.Branch)
}
