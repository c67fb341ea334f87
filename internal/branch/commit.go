package branch

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/branch/attribute"
	"github.com/litterbox-sandbox/litterbox/internal/branch/ignore"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// ImportRequest asks for one commit of what a sandbox holds at this moment.
type ImportRequest struct {
	Branch        string // short name
	Source        Source
	State         string // path of the sandbox's delta file; its directory exists
	Base          string // commit the layers hold
	Last          string // commit of the last iteration; used when State is lost
	Author        Signature
	Subject       string
	Body          string
	Trailers      []Trailer
	Agent         *Received         // the agent's own commits, which come first
	Modules       map[string]string // where submodules stand inside: path to commit, as the host has it
	OnlyIfChanged bool              // no commit when the tree stays the same
	Preview       bool              // a commit that no ref points at; nothing is recorded
	Strict        bool              // flush everything to the disk
	Limits        Limits
}

// ImportResult is what came of it.
type ImportResult struct {
	Commit  string   // the branch's tip, or the previewed commit
	Tree    string   // its tree
	Written bool     // false only with OnlyIfChanged
	Agent   []string // the agent's commits as they stand on the branch, oldest first
	Changed int      // paths that differ from the iteration before
	Notes   []string // what stayed out, and why
	Left    Left     // what stayed out although it is not ignored
	Packing Packing  // whether it is time to call Consolidate
	Paths   []string // the first of them, sorted
}

// Import commits what a sandbox changed on top of its branch, while it may be
// running and hostile. Someone else may have committed to the branch meanwhile:
// only what the sandbox changed since the last iteration is applied. The caller
// holds the sandbox's lock. It fails with NotFound when the branch is gone.
func (r *Repository) Import(ctx context.Context, q ImportRequest) (ImportResult, error) {
	if err := errors.Join(checkRef(q.Branch), checkOids(q.Base, q.Last)); err != nil {
		return ImportResult{}, err
	}
	var result ImportResult
	defer q.Agent.release()
	err := despiteCollection(ctx, func(again bool) error {
		if again {
			r.dropKeeps()
			// The agent's own commits may have gone with the rest.
			if err := q.Agent.restore(ctx); err != nil {
				return err
			}
		}
		var err error
		result, err = r.importOnce(ctx, q)
		return err
	})
	return result, err
}

func (r *Repository) importOnce(ctx context.Context, q ImportRequest) (ImportResult, error) {
	for attempt := 0; ; attempt++ {
		i := &importer{r: r, q: q, ref: heads + q.Branch}
		if q.Preview {
			i.ref = previewRefs + q.Branch
		}
		result, err := i.run(ctx)
		var lock *lockedError
		if errors.As(err, &lock) && attempt < 3 {
			if err = r.awaitLock(ctx, lock); err == nil {
				continue
			}
		}
		if err == nil || attempt == 3 || !errors.Is(err, errMoved) {
			if err == nil {
				return result, nil
			}
			return result, i.explain(ctx, err)
		}
	}
}

func checkOids(oids ...string) error {
	for _, oid := range oids {
		if oid != "" && !isOid(oid) {
			return fault.New(fault.Invalid, "cannot use %q as an object id", oid)
		}
	}
	return nil
}

// errMoved is a branch that somebody moved between our reading and our writing.
var errMoved = fault.New(fault.Conflict, "the branch moved meanwhile")

// importer is one attempt of one import.
type importer struct {
	r   *Repository
	q   ImportRequest
	ref string
	old *delta
	now *present
	fi  *fastImport

	agent  map[string]treeDiff // what the agent's commits changed since the last iteration
	active bool                // the tip holds what the last iteration left: nobody else committed
	result ImportResult

	parentTree string // of the commit under way, before its edits
}

func (i *importer) run(ctx context.Context) (ImportResult, error) {
	var err error
	if i.old, err = i.r.delta(ctx, i.q); err != nil {
		return i.result, err
	}
	if i.fi = i.r.takeSpare(i.edges(), i.q.Strict); i.fi == nil {
		// Started before the scan: while we read files, git starts.
		if i.fi, err = i.r.startFastImport(ctx, i.edges(), i.q.Strict); err != nil {
			return i.result, err
		}
	}
	defer i.fi.stop()
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

func (i *importer) scan(ctx context.Context) error {
	s, err := i.r.settings()
	if err != nil {
		return err
	}
	found, err := i.r.rules(s)
	if err != nil {
		return err
	}
	var options []attribute.Option
	if s.truth("core.ignorecase") {
		options = append(options, attribute.IgnoreCase)
	}
	w := &scan{
		source: i.q.Source, old: i.old, limits: i.q.Limits, format: i.r.ObjectFormat,
		spoolDir: filepath.Dir(i.q.State), emit: i.fi.blob,
		ignore:     ignore.NewStack(s.truth("core.ignorecase"), found.excludesFile, found.exclude),
		attributes: attribute.NewStack(found.attributesFile, found.attributes, options...),
		settings:   attribute.Settings{AutoCRLF: s.autoCRLF(), EOL: s.eol(), LFS: s.values["filter.lfs.clean"] != "" || s.values["filter.lfs.process"] != ""},
		convert:    s.autoCRLF() != "false" || len(found.attributesFile)+len(found.attributes) > 0,
		forced:     map[string]struct{}{}, gitlinks: map[string]file{}, modules: map[string]file{},
		storedCRLF: func(path string) bool { return i.storedCRLF(ctx, path) },
		largeFile:  func(content []byte) error { return i.r.storeLargeFile(s, content) },
		blobSize:   func(oid string) int64 { return i.blobSize(ctx, oid) },
	}
	for path, c := range i.agent {
		switch oid, err := hex.DecodeString(c.newOid); {
		case err != nil:
			return fault.Wrap(fault.Internal, err, "cannot read what git diff-tree printed")
		case c.newMode == modeGitlink:
			w.gitlinks[path] = file{mode: modeGitlink, oid: string(oid)}
		case c.newMode != 0:
			w.forced[path] = struct{}{}
		}
	}
	for path, commit := range i.q.Modules {
		oid, err := hex.DecodeString(commit)
		if err != nil || len(oid) != newHash(i.r.ObjectFormat).Size() {
			return fault.New(fault.Invalid, "cannot use %q as an object id", commit)
		}
		w.modules[path] = file{mode: modeGitlink, oid: string(oid)}
	}
	i.now, err = w.run(ctx)
	return err
}

// storedCRLF looks at the blob committed last; it is asked for few files.
func (i *importer) storedCRLF(ctx context.Context, path string) bool {
	blob, err := i.r.git("cat-file", "blob", i.old.last+":"+path).output(ctx)
	return err == nil && attribute.HasCRLF(blob)
}

// blobSize is asked when a sparse file changed of which a rebuilt delta knows
// no size.
func (i *importer) blobSize(ctx context.Context, oid string) int64 {
	said, err := i.r.git("cat-file", "-s", hex.EncodeToString([]byte(oid))).line(ctx)
	if err != nil {
		return 0
	}
	size, _ := strconv.ParseInt(said, 10, 64) // 0 is what nobody knows
	return size
}

// commits writes the agent's commits and the iteration's own.
func (i *importer) commits(ctx context.Context) error {
	if i.q.OnlyIfChanged && len(i.agent) == 0 && i.unchanged() {
		return i.unwritten(ctx)
	}
	if i.old.lastTree == "" {
		answers, err := i.fi.ask(listQuery(i.old.last, ""))
		if err != nil {
			return err
		}
		i.old.lastTree = answers[0].oid
	}
	parent := heads + i.q.Branch + "^0"
	for _, c := range i.q.Agent.commits() {
		oid, err := i.agentCommit(ctx, c, parent)
		if err != nil {
			return err
		}
		i.result.Agent = append(i.result.Agent, oid)
		parent = ":1" // the branch as it now stands
	}
	if err := i.fi.begin(i.ref, i.q.Author, i.q.Author, i.message(), parent); err != nil {
		return err
	}
	before, err := i.fi.ask(`ls ""`)
	if err != nil {
		return err
	}
	if len(i.q.Agent.commits()) == 0 {
		i.active = !i.old.shared && before[0].oid == i.old.lastTree
	}
	i.parentTree = before[0].oid
	edits, err := i.edits()
	if err != nil {
		return err
	}
	if err := i.apply(ctx, edits); err != nil {
		return err
	}
	after, err := i.fi.ask(`ls ""`)
	if err != nil {
		return err
	}
	i.result.Changed = len(edits) + len(i.agent)
	for _, e := range edits {
		if _, both := i.agent[e.path]; both {
			i.result.Changed--
		}
	}
	i.result.Paths = firstPaths(edits, i.agent)
	i.result.Tree, i.result.Written = after[0].oid, true
	if i.result.Commit, err = i.fi.end(); err != nil {
		return err
	}
	if i.q.OnlyIfChanged && len(i.result.Agent) == 0 && after[0].oid == before[0].oid {
		i.fi.reset(i.ref, heads+i.q.Branch+"^0")
		return i.unwritten(ctx)
	}
	return nil
}

// maxPaths is how many changed paths a result names.
const maxPaths = 100

func firstPaths(edits []edit, agent map[string]treeDiff) []string {
	paths := slices.Collect(maps.Keys(agent))
	for _, e := range edits {
		if _, both := agent[e.path]; !both {
			paths = append(paths, e.path)
		}
	}
	slices.Sort(paths)
	return paths[:min(len(paths), maxPaths)]
}

// unchanged tells, before any question to git, that nothing can have changed.
func (i *importer) unchanged() bool {
	same := func(a, b file) bool { return a.mode == b.mode && a.oid == b.oid }
	return maps.EqualFunc(i.now.files, i.old.files, same) && maps.Equal(i.now.gone, i.old.gone)
}

func (i *importer) unwritten(ctx context.Context) error {
	tip, tree, err := i.r.Resolve(ctx, heads+i.q.Branch)
	i.result = ImportResult{Commit: tip, Tree: tree}
	return err
}

// edges is the file in which git notes the packs it wrote for this sandbox.
func (i *importer) edges() string {
	if i.q.Preview {
		return ""
	}
	return i.q.State + packsSuffix
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
	i.result.Notes = append(i.q.Agent.notes(), i.now.notes.list()...)
	i.result.Left = i.now.left
	if where := i.r.checkedOutAt(i.q.Branch); where != "" && i.result.Written && !i.q.Preview {
		i.result.Notes = append(i.result.Notes, fmt.Sprintf(
			"the branch %q is checked out in %q: the files there do not follow (git -C %q reset --keep)", i.q.Branch, where, where))
	}
	if i.q.Preview {
		i.fi.reset(i.ref, i.r.zero())
		return i.fi.finish()
	}
	next.shared = !i.active
	if !i.result.Written {
		next.last, next.lastTree, next.shared = i.old.last, i.old.lastTree, i.old.shared
	}
	if err := next.stage(i.q.State, i.q.Strict); err != nil {
		return err
	}
	if err := i.fi.finish(); err != nil {
		return err
	}
	i.result.Packing = i.r.written(i.q.State)
	return commitStaged(i.q.State)
}

// explain finds out why git refused.
func (i *importer) explain(ctx context.Context, err error) error {
	if _, tipErr := i.r.Tip(ctx, i.q.Branch); fault.KindOf(tipErr) == fault.NotFound {
		return fault.Wrap(fault.NotFound, tipErr, "cannot commit").WithHint("litterbox reattach")
	}
	return fault.Wrap("", err, "cannot commit to the branch %q", i.q.Branch)
}
