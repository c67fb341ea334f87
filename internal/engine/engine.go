// Package engine is every use case, once: create, exec, write, milestone,
// diff, apply, merge, delete and the rest. Frontends call it; it calls git
// through packages git, layer, branch and landing, places through the driver boundary and the guest
// through the wire. It prints nothing and parses no flags.
//
// Start reading at [Engine.Create] and [Engine.Exec].
package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/branch"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
)

// Options are what the composition root gives an engine.
type Options struct {
	Store   *store.Store
	Drivers *driver.Set
	// Degraded is the driver of new sandboxes where none was chosen, Full fails
	// and less was allowed; empty is none.
	Degraded string
	// Full tries whether the default driver isolates fully here. Its error says
	// why not, and its hint what mends that.
	Full func() error
	// Keepers starts the keepers of sandboxes.
	Keepers keeper.Starter
	// Probe looks closely at this machine, for doctor.
	Probe    func(stateDir string) []Check
	Progress Progress
	// Later starts this program again, detached, for work that nobody waits
	// for; [Engine.Background] does it there, with the environment env. nil leaves
	// such work undone.
	Later func(env []string, task, sandboxID string) error
	// Runner starts this program again, detached and with the environment env, to
	// drive a run of an agent: [Engine.DriveAgent] reads the order there. What it
	// has to say goes to the file log. It gives the process id; nil runs no agents.
	Runner func(env []string, order []byte, log string) (pid int, err error)
	// Note receives what the user should know from use cases whose result has
	// no place for it; nil drops it.
	Note func(string)
}

// Engine carries out use cases. It is safe for concurrent use; what must not
// happen at once on one sandbox is serialized by locks that other processes
// see too.
type Engine struct {
	Options
}

// New makes an engine.
func New(options Options) *Engine { return &Engine{options} }

// place is one sandbox that a use case works on, with what it needs around it.
type place struct {
	record *sandbox.Sandbox
	repo   *git.Repository
	driver driver.Driver
	config config.Config
	store  *store.Store // flushes as this sandbox's durability demands
	dir    string       // the sandbox's state directory
	notes  []string     // what the user should know
	left   branch.Left  // what the last commit could not take

	flatten bool // its layers should be made one, once nobody waits

	paused, unreachable bool              // its keeper said so when it was dialled last
	from                map[string]string // where the limits in config come from, by name
}

// place is the work on a recorded sandbox. Its durability is that of its last
// start: commands of a running sandbox do not read the configuration.
func (e *Engine) place(record *sandbox.Sandbox, repo *git.Repository, d driver.Driver) *place {
	return &place{record: record, repo: repo, driver: d, store: e.Store.Durable(record.Strict), dir: e.Store.SandboxDir(record.ID)}
}

// find opens the sandbox called name in the repository that dir belongs to,
// and finishes what a dead command left half-done.
func (e *Engine) find(ctx context.Context, dir, name string) (*place, error) {
	slug, err := sandbox.Slug(name)
	if err != nil {
		return nil, err
	}
	gitDir, err := gitDirOf(ctx, dir)
	if err != nil {
		return nil, e.elsewhere(ctx, dir, slug, err)
	}
	id, err := e.Store.Claimed(gitDir, slug)
	if err != nil {
		return nil, err
	}
	if id == "" {
		err := fault.New(fault.NotFound, "no sandbox named %q in this repository", slug).WithHint("litterbox list")
		return nil, e.elsewhere(ctx, dir, slug, err)
	}
	record, err := e.sandbox(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "sandbox %q is just being created or deleted", slug).WithHint("litterbox list")
	}
	if err != nil {
		return nil, err
	}
	p, err := e.open(ctx, record)
	if err != nil {
		return nil, err
	}
	if err := e.finishCopies(ctx, p); err != nil {
		return nil, err
	}
	e.moveWorktree(ctx, p)
	return p, nil
}

// gitDirOf finds the common git directory for dir, without starting git where
// the repository is an ordinary one.
func gitDirOf(ctx context.Context, dir string) (string, error) {
	if location, ok := git.Locate(dir); ok {
		return location.CommonDir, nil
	}
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return "", err
	}
	return repo.CommonDir, nil
}

// open prepares the work on a recorded sandbox.
func (e *Engine) open(ctx context.Context, record *sandbox.Sandbox) (*place, error) {
	d := e.Drivers.Get(record.Driver)
	if d == nil {
		return nil, fault.New(fault.Unsupported, "cannot use sandbox %q: this program has no driver %q; those it has: %s",
			record.Name, record.Driver, strings.Join(e.Drivers.Names(), ", "))
	}
	if _, err := os.Stat(record.GitDir); err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "cannot open the repository of sandbox %q", record.Name).
			WithHint("litterbox list --all")
	}
	repo := e.memory().At(ctx, record.GitDir, record.Repository, record.Base)
	p := e.place(record, repo, d)
	if record.State == sandbox.Creating || record.State == sandbox.Deleting {
		return nil, e.unfinished(record)
	}
	return p, nil
}

// tell passes on the notes of a use case whose result cannot hold them.
func (e *Engine) tell(p *place) {
	if e.Note == nil {
		return
	}
	for _, note := range p.notes {
		e.Note(note)
	}
	p.notes = nil
}

func (p *place) note(notes ...string) {
	for _, note := range notes {
		if !slices.Contains(p.notes, note) {
			p.notes = append(p.notes, note)
		}
	}
}

func (p *place) path(parts ...string) string {
	return filepath.Join(append([]string{p.dir}, parts...)...)
}

// deltaFile remembers what the branch holds against its base.
func (p *place) deltaFile() string { return p.path(keeper.DeltaFile) }

// settings loads the configuration that counts: the one in the human's
// checkout, and the human's own.
func (e *Engine) settings(ctx context.Context, top, gitDir string) (settings, error) {
	user, err := config.LoadUser(callerOf(ctx))
	if err != nil {
		return settings{}, err
	}
	repo, err := config.Load(top)
	if err != nil {
		return settings{}, err
	}
	trust := config.Trust{File: e.Store.TrustFile()}
	trusted, err := trust.Trusted(gitDir, repo.Hash)
	if err != nil {
		return settings{}, err
	}
	merged, withheld := config.Merge(user, repo, trusted)
	s := settings{config: merged}
	s.config.Limits, s.from, s.notes = limitsOf(user.Limits, repo.Limits, trusted)
	for _, key := range withheld {
		s.notes = append(s.notes, grant(key, repo)+" in "+config.RepositoryFile+" "+needsTrust)
	}
	s.withheld, s.hash, s.image = withheld, repo.Hash, repo.Container.BaseImage
	return s, nil
}

// settings are the configuration that counts, and what to tell about it.
type settings struct {
	config config.Config
	from   map[string]string // where each limit comes from
	notes  []string

	withheld []string // keys of the repository's file that do not count without trust
	hash     string   // of that file
	image    string   // that it asks for
}

func (e *Engine) memory() git.Memory { return git.Memory{Dir: e.Store.RepositoryDir} }

func (e *Engine) cache(gitDir string) layer.Cache {
	return layer.Cache{Dir: filepath.Join(e.Store.RepositoryDir(gitDir), "cache")}
}

// layers checks the base's files and history out into the shared cache, unless
// they are there, and returns them as layers for the workspace.
func (e *Engine) layers(ctx context.Context, p *place) ([]string, error) {
	cache := e.cache(p.record.GitDir)
	cache.Had, cache.HadModules = p.record.Layers, p.record.Modules
	if !p.copied() {
		cache.Monitor = layer.Monitor{
			Program: func() string { return p.driver.Capabilities().FSMonitor }, // it looks at the machine
			Files:   monitoredFiles,
		}
	}
	made, err := cache.Layers(ctx, p.repo, p.record.Base, p.record.BaseTree, e.layerOwner(p), layer.Progress(e.Progress))
	if err != nil {
		return nil, err
	}
	p.flatten = made.Files.Flatten
	p.keepModules(made)
	return made.Dirs, nil
}

// monitoredFiles is the size of a tree from which git status is quicker when it
// asks what changed: on an overlay it looks at about 500 files in the
// millisecond, and a program that answers takes some.
const monitoredFiles = 2500

func (e *Engine) layerOwner(p *place) git.Owner {
	own := p.driver.Ownership(p.record.ID)
	return git.Owner{UID: own.UID, GID: own.GID, Chown: own.ChownLayers}
}

// shutdownGrace is what the processes of a sandbox get between TERM and KILL.
const shutdownGrace = 3 * time.Second
