package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// BuildRequest asks for a golden.
type BuildRequest struct {
	Dir  string // any directory of the repository
	Name string // as typed; empty means DefaultGolden
	Base string // ref or commit that it is built on; empty means HEAD
	// Update begins with the golden that is there, and runs what has changed since; with
	// SyncOnly only the services and hooks.post_sync.
	Update, SyncOnly bool
	SkipSync         bool   // without hooks.post_sync
	NoCache          bool   // without package caches of the host, and images are asked for again
	Driver           string // empty: the configuration's, or the program's default
	Review           func(context.Context, Untrusted) (trust bool, err error)
	Output           io.Writer // takes what commands print while they run; nil drops it
}

// Built is the result of a build.
type Built struct {
	Golden
	Log   string   `json:"log"` // file with everything that was printed
	Notes []string `json:"-"`
}

// building is a golden under way, for the sandbox that it is built in.
type building struct {
	request BuildRequest
	golden  *golden
	from    *golden // that an update begins with
	output  *buildLog
	phases  []phase  // nil until the first of them begins
	other   []string // written files that git does not ignore
	stale   []string // what changed that an update did not make again
	changed []string // origins that an update finds changed
	ran     []string // parts that are made (again), also those that the configuration leaves empty
}

// Build makes a golden in a sandbox of its own, which is gone afterwards. The
// golden that was there under the name counts until the new one is whole.
func (e *Engine) Build(ctx context.Context, request BuildRequest) (built Built, err error) {
	if request.Name == "" {
		request.Name = DefaultGolden
	}
	if request.Name, err = sandbox.Slug(request.Name); err != nil {
		return Built{}, err
	}
	gitDir, err := gitDirOf(ctx, request.Dir)
	if err != nil {
		return Built{}, err
	}
	verb := "build"
	if request.Update {
		verb = "golden update"
	}
	ctx, call, err := e.record(ctx, verb, request.Dir, "", map[string]any{"golden": request.Name, "base": request.Base})
	if err != nil {
		return Built{}, err
	}
	defer func() { err = call.end("", nil, err) }()
	unlock, err := e.lockGolden(ctx, gitDir, request.Name)
	if err != nil {
		return Built{}, err
	}
	defer unlock()
	return e.buildGolden(ctx, gitDir, request)
}

// buildGolden is Build under the lock of the name.
func (e *Engine) buildGolden(ctx context.Context, gitDir string, request BuildRequest) (built Built, err error) {
	if err := e.clearGoldens(ctx, gitDir, request.Name); err != nil {
		return Built{}, err
	}
	b := &building{request: request, golden: &golden{
		Version: sandbox.RecordVersion, Name: request.Name, GitDir: gitDir, CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
		dir: e.newGoldenDir(gitDir, request.Name),
	}}
	if request.Update {
		if b.from, err = e.findGolden(gitDir, request.Name, request.Driver); err != nil {
			return Built{}, err
		}
		if b.from == nil {
			return Built{}, e.noGolden(gitDir, request.Name, "update")
		}
		request.Driver = b.from.Driver // nothing else can begin with it
	}
	built.Log = e.goldenLog(gitDir, request.Name)
	if b.output, err = newBuildLog(built.Log, request.Output, e.secretsOf(ctx)); err != nil {
		return built, err
	}
	defer func() {
		b.output.end(err)
		err = errors.Join(err, b.output.Close())
	}()
	if err := os.MkdirAll(b.golden.dir, 0o700); err != nil {
		return built, fault.Wrap(fault.Unavailable, err, "cannot make the directory of a golden")
	}
	made, err := e.create(ctx, CreateRequest{
		Dir: request.Dir, Name: "golden-" + request.Name, Base: request.Base, Pull: request.NoCache, Driver: request.Driver, Review: request.Review,
	}, nil, b)
	built.Notes = append(built.Notes, made.Notes...)
	if err != nil {
		if len(b.phases) == 0 {
			built.Log = "" // it holds the error alone
		}
		return built, errors.Join(failedBuild(err, b), e.removeGolden(ctx, b.golden.dir), e.sweepFrozen())
	}
	if err := errors.Join(e.clearGoldens(ctx, gitDir, request.Name), e.sweepFrozen()); err != nil {
		return built, err
	}
	built.Golden = e.shownGolden(b.golden)
	if len(b.stale) > 0 {
		built.Stale = b.stale
		built.Notes = append(built.Notes, b.golden.staleNote(b.stale))
	}
	if n := len(b.other); n > 0 {
		built.Notes = append(built.Notes, counted(n, "file")+" that git does not ignore, such as "+b.other[0]+", "+areIs(n)+" not part of the golden")
	}
	return built, nil
}

// clearBuilt deletes the branch that a killed build has left: one that litterbox
// made and that nothing was committed to. The name is claimed, so no sandbox has it.
// Any other branch stays in the way.
func (p *place) clearBuilt(ctx context.Context) error {
	tip, err := p.repo.Tip(ctx, p.record.Branch)
	if fault.KindOf(err) == fault.NotFound {
		return nil // as nearly always
	}
	if err != nil {
		return err
	}
	if untouched, err := p.repo.IsUntouched(ctx, p.record.Branch); err != nil || !untouched {
		return err
	}
	return p.repo.DeleteBranch(ctx, p.record.Branch, tip)
}

func areIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// failedBuild says what is kept.
func failedBuild(err error, b *building) error {
	if fault.KindOf(err) == fault.Canceled {
		return err
	}
	failed, hint := fault.Wrap("", err, "cannot build the golden %q", b.request.Name), fault.HintOf(err)
	if hint == "" && len(b.phases) > 0 {
		hint = "litterbox golden log " + b.request.Name
	}
	if hint == "" {
		return failed
	}
	return failed.WithHint("%s", hint)
}

// run carries out a build in its sandbox.
func (b *building) run(ctx context.Context, e *Engine, p *place) error {
	began := time.Now()
	if can := p.driver.Capabilities(); !can.Snapshots.Freeze || !can.Fork || p.far() && p.goldenKeeper() == nil {
		return fault.New(fault.Unsupported, "the driver %q makes no goldens", p.record.Driver).
			WithHint("litterbox spawn 2 --from SANDBOX  # forks begin with what SANDBOX has")
	}
	if p.copied() {
		return fault.New(fault.Unsupported, "workspaces are copies here, and goldens need overlays").WithHint("litterbox doctor")
	}
	if len(p.config.Copy) > 0 && !b.request.Update {
		if err := e.bringIgnored(ctx, p); err != nil {
			return err
		}
	}
	var err error
	if b.golden.MadeFrom, err = madeFrom(ctx, p.repo, p.record.BaseTree, p.config, p.record.Image); err != nil {
		return err
	}
	if b.from != nil {
		b.changed = differs(b.from.MadeFrom, b.golden.MadeFrom)
	}
	b.phases = b.plan(p)
	if kept := b.keptParts(p.config); len(kept) > 0 {
		b.output.note("unchanged, and kept: %s\n", strings.Join(kept, ", "))
	}
	for n, one := range b.phases {
		e.report("golden "+b.request.Name+": "+one.name, n, len(b.phases)+1)
		b.output.title(one.name, one.shown)
		if err := one.do(ctx, e, p, b); err != nil {
			return err
		}
	}
	label := "golden " + b.request.Name + ": keeping it"
	e.report(label, len(b.phases), len(b.phases)+1)
	defer e.report(label, 1, 1)
	if err := e.quiesce(ctx, p); err != nil {
		return err
	}
	return e.keepGolden(ctx, p, b, began)
}

// keepGolden makes the layer of a sandbox in which nothing is at work, and then the
// record. Only a running place can list files in another machine.
func (e *Engine) keepGolden(ctx context.Context, p *place, b *building, began time.Time) error {
	if !p.far() {
		if err := e.stop(ctx, p); err != nil {
			return err
		}
	}
	written, err := e.writtenIn(ctx, p)
	if err == nil && p.far() {
		err = e.stop(ctx, p)
	}
	if err != nil {
		return err
	}
	b.other = written.Other
	g := b.golden
	if p.far() {
		err = e.keepFar(ctx, p, g, written.Ignored)
	} else {
		err = e.keepHere(ctx, p, g, written.Ignored)
	}
	if err != nil {
		return err
	}
	g.Repository, g.Home, g.Driver, g.Image = p.record.Repository, homeInside(callerOf(ctx), p.record.Repository), p.record.Driver, p.record.Image
	g.Base, g.BaseTree, g.BaseRef = p.record.Base, p.record.BaseTree, p.record.BaseRef
	b.keepsMadeFrom()
	if b.stale, err = g.stale(ctx, p.repo, g.BaseTree, p.config, g.Image); err != nil {
		return err
	}
	g.Took = time.Since(began).Round(time.Millisecond)
	return g.save(p.store)
}

// keepHere makes the layer of a golden on this machine.
func (e *Engine) keepHere(ctx context.Context, p *place, g *golden, ignored []string) error {
	draft, err := goldenBox(p.driver, g.dir).Draft()
	if err != nil {
		return err
	}
	if err := draft.Fill(e.boxOf(p), ignored); err != nil {
		return err
	}
	if g.Placeholders, err = e.searchSecrets(ctx, p, func(texts [][]byte) ([]frozen.Found, error) { return frozen.Search(draft.Dir, texts) }); err != nil {
		return err
	}
	g.Layer, g.Bytes = draft.Name, inodes{}.size(draft.Dir)
	return draft.Keep()
}

// phase is one part of a build.
type phase struct {
	name  string
	shown string // the command
	do    func(context.Context, *Engine, *place, *building) error
}

// plan lists what a build does, in order.
func (b *building) plan(p *place) (phases []phase) {
	add := func(name string, argv []string) {
		if len(argv) > 0 {
			phases = append(phases, phase{name, quoteCommand(argv), func(ctx context.Context, e *Engine, p *place, b *building) error {
				return e.buildStep(ctx, p, b, name, argv)
			}})
		}
	}
	c := p.config
	b.ran = b.toRun(c)
	for _, name := range b.ran {
		switch name {
		case fromAgents:
			if len(c.Golden.Agents) > 0 {
				phases = append(phases, phase{name, "", buildAgents})
			}
		case fromProvision:
			add(name, c.Hooks.PostProvision)
		case fromTools:
			if len(c.Golden.Tools) > 0 {
				phases = append(phases, phase{name, "", buildTools})
			}
		case fromSetUp:
			add(name, c.Container.SetupCommand)
		case fromServices:
			if len(c.Container.Services) > 0 {
				phases = append(phases, phase{name, "", buildServices})
			}
		case fromSync:
			add(name, c.Hooks.PostSync)
		}
	}
	return phases
}

// buildStep runs one command of a build; one that fails ends it.
func (e *Engine) buildStep(ctx context.Context, p *place, b *building, name string, argv []string) error {
	var end tail
	began := time.Now()
	to := io.MultiWriter(&end, b.output)
	result, err := e.execute(ctx, p, ExecRequest{
		Name: p.record.Name, Argv: argv, Kind: "setup", Message: name, NoCommit: true, Streams: Streams{Stdout: to, Stderr: to},
	})
	if ctx.Err() != nil {
		return fault.New(fault.Canceled, "canceled: the golden %q was not built; %s was ended after %s", b.request.Name, name, time.Since(began).Round(time.Second))
	}
	if err != nil || result.Exit.Code == 0 {
		return err
	}
	said := ""
	if b.request.Output == nil {
		said = "; it said:\n" + lastLines(end.String(), 10)
	}
	refused, rules := e.refusedInSetUp(ctx, p, began)
	failed := fault.New(fault.Invalid, "%s exited %d%s%s", name, result.Exit.Code, said, refused)
	b.output.note("%s exited %d%s\n", name, result.Exit.Code, refused)
	if len(rules) > 0 {
		return failed.WithHint("%s, then %s", e.opening(ctx, p, rules), b.golden.rebuild())
	}
	return failed
}

// buildServices starts the services and waits for those that say when they are
// ready: what they first put into their directories becomes part of the golden.
func buildServices(ctx context.Context, e *Engine, p *place, b *building) error {
	if err := e.startServices(ctx, p); err != nil {
		return err
	}
	failed, err := e.awaitServices(ctx, p, servicePatience)
	if err != nil {
		return err
	}
	for _, one := range failed {
		for _, line := range one.Log {
			b.output.note("%s: %s\n", one.Name, line)
		}
	}
	if len(failed) > 0 {
		return fault.New(fault.Unavailable, "the service %q is not ready: it is %s", failed[0].Name, failed[0].State)
	}
	return nil
}

// servicePatience bounds how long a build waits for all services together.
const servicePatience = 10 * time.Minute
