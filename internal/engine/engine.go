// Package engine is every use case, once: create, exec, write, milestone,
// diff, apply, merge, delete and the rest. Frontends call it; it calls git
// through packages git, layer, branch and landing, places through the driver boundary and the guest
// through the wire. It prints nothing and parses no flags.
//
// Start reading at [Engine.Create] and [Engine.Exec].
package engine

import (
	"context"
	"net"
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
	"github.com/litterbox-sandbox/litterbox/internal/watch"
)

// Options are what the composition root gives an engine.
type Options struct {
	Store   *store.Store
	Drivers *driver.Set
	// Degraded is the driver of new sandboxes where none was chosen, Full fails and
	// a lower tier was allowed; empty if there is none.
	Degraded string
	// Full tries whether the default driver isolates fully here. Its error says
	// why not, and its hint what mends that.
	Full func() error
	// Machines are those that the human has added; nil if there is none.
	Machines Machines
	// VM is the virtual machine that sandboxes share; nil if there is none.
	VM VirtualMachine
	// Keepers starts the keepers of sandboxes.
	Keepers keeper.Starter
	// Probe looks closely at this machine, for doctor.
	Probe    func(stateDir string) []Check
	Progress Progress
	// Later starts this program again, detached, for work that no command waits
	// for; [Engine.Background] does it there, with the environment env. nil leaves
	// such work undone.
	Later func(env []string, task, sandboxID string) error
	// Runner starts this program again, detached and with the environment env, to
	// drive a run of an agent: [Engine.DriveAgent] reads the order there. Its
	// messages go to the file log. It returns the process id; nil runs no agents.
	Runner func(env []string, order []byte, log string) (pid int, err error)
	// Note receives messages for the user from use cases whose result has no place
	// for them; nil drops them.
	Note func(string)
	// Program is this program, for keepers that have it install packages; empty
	// leaves apt-get inside as it is.
	Program string
	// Clock says what time it is; the zero value is the machine's.
	Clock Clock
}

// Engine carries out use cases. It is safe for concurrent use; operations that must
// not overlap on one sandbox are serialized by locks that other processes see too.
type Engine struct {
	Options
	watch *watch.Hub // what all watchers share
}

// New makes an engine.
func New(options Options) *Engine {
	e := &Engine{Options: options}
	e.watch = e.newHub()
	return e
}

// place is one sandbox that a use case works on, with everything it needs.
type place struct {
	record *sandbox.Sandbox
	repo   *git.Repository
	driver driver.Driver
	config config.Config
	store  *store.Store // flushes as this sandbox's durability demands
	dir    string       // the sandbox's state directory
	notes  []string     // what the user should know
	said   []string     // notes that a review has shown already
	left   branch.Left  // what the last commit could not take

	flatten bool // its layers should be made one, once no command waits

	golden   *golden   // that it begins with; nil: none
	building *building // of a golden in it; nil: it is a sandbox to work in

	paused, unreachable bool              // its keeper said so when it was dialled last
	looking             *looking          // for what the network refuses its command; nil unless it is asked for
	answered            bool              // it ran when its start was asked for
	from                map[string]string // where the limits in config come from, by name

	seen git.Location // where its caller stands; zero when git was asked, or no one looked
}

// place is the work on a recorded sandbox. Its durability is that of its last
// start: commands of a running sandbox do not read the configuration.
func (e *Engine) place(record *sandbox.Sandbox, repo *git.Repository, d driver.Driver) *place {
	return &place{record: record, repo: repo, driver: d, store: e.Store.Durable(record.Strict), dir: e.Store.SandboxDir(record.ID)}
}

// running is a stream to what ran when its start was asked for, and nil if nothing did.
func (p *place) running(ctx context.Context) *net.UnixConn {
	conn, err := p.dial(ctx)
	if p.answered = err == nil; !p.answered {
		return nil
	}
	return conn
}

// kind is what its user calls it.
func (p *place) kind() string {
	if p.record.Live != nil {
		return "environment"
	}
	return "sandbox"
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
	if e.Note != nil {
		e.say(p.notes)
		p.notes = nil
	}
}

// say is tell for notes of no sandbox.
func (e *Engine) say(notes []string) {
	for _, note := range notes {
		if e.Note != nil {
			e.Note(note)
		}
	}
}

func (p *place) note(notes ...string) {
	for _, note := range notes {
		if !slices.Contains(p.notes, note) && !slices.Contains(p.said, note) {
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
	return e.settingsOf(gitDir, user, repo)
}

// settingsOf works out which values of both files count.
func (e *Engine) settingsOf(gitDir string, user, repo config.Config) (settings, error) {
	trusted := false
	if repo.Hash != "" {
		trust := config.Trust{File: e.Store.TrustFile()}
		var err error
		if trusted, err = trust.Trusted(gitDir, repo.Hash); err != nil {
			return settings{}, err
		}
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
	said     []string // notes about these that the user has seen
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

// shutdownGrace is the time that the processes of a sandbox get between TERM and
// KILL.
const shutdownGrace = 3 * time.Second
