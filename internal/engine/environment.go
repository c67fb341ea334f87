package engine

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// EnvironmentRequest runs a command in the live environment of a directory, which
// is made when it is missing.
type EnvironmentRequest struct {
	Path        string // of the project, or of a directory in its repository
	WritableGit bool   // nothing in it stays read-only; counts when the environment starts
	// Exec is the command; Dir and Name in it do not count, and it commits nothing.
	Exec ExecRequest
}

// Environment is one live environment, as it is listed.
type Environment struct {
	Name        string            `json:"name"`
	Path        string            `json:"path"`
	State       sandbox.State     `json:"state"`
	Commands    int               `json:"commands"` // that run in it at this moment
	WritableGit bool              `json:"writable_git"`
	Driver      string            `json:"driver"`
	Isolation   sandbox.Isolation `json:"isolation"`
	Network     string            `json:"network"`
	Problem     string            `json:"problem,omitempty"`
	CreatedAt   time.Time         `json:"created_at"`
	ID          string            `json:"id"`
	// Namespace is the file that nsenter --mount joins: here, of one that root has
	// started; in its machine, of one that is in another.
	Namespace string `json:"namespace"`
}

// EnvironmentDeletion names what is to be deleted.
type EnvironmentDeletion struct {
	Path string
	All  bool // every environment; Path does not count
	Stop bool // also those in which commands run, which are ended
}

// project is the directory of an environment.
type project struct {
	top    string
	below  string // where in it the directory lies
	gitDir string // what names and trust go by: the common git directory, or top
	live   sandbox.Live
}

// projectAt finds the project that a directory belongs to, and starts no git: the
// top of its checkout, or the directory itself where there is no repository.
func (e *Engine) projectAt(ctx context.Context, dir string) (project, error) {
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return project{}, fault.Wrap(fault.NotFound, err, "cannot find %q", dir)
	}
	if info, err := os.Stat(top); err != nil || !info.IsDir() {
		return project{}, fault.New(fault.Invalid, "cannot make an environment of %q: it is not a directory", dir)
	}
	made := project{top: top, gitDir: top}
	if location, ok := git.Locate(top); ok {
		made = project{top: location.Top, gitDir: location.CommonDir, live: sandbox.Live{GitDir: location.GitDir, Format: "sha1"}}
		values, err := e.memory().At(ctx, location.CommonDir, location.Top, "").Settings()
		if err != nil {
			return project{}, err
		}
		made.live.Format = cmp.Or(values.Values["extensions.objectformat"], "sha1")
		if made.below, err = filepath.Rel(made.top, top); err != nil {
			return project{}, fault.Wrap(fault.Internal, err, "cannot place %q in %q", top, made.top)
		}
	}
	return made, e.checkLive(ctx, made.top)
}

// liveExactly cannot be environments themselves; directories below them can.
// liveBelow cannot either, nor can anything in them.
var (
	liveExactly = []string{"/", "/home", "/root", "/Users", "/tmp", "/var", "/opt", "/srv", "/mnt", "/media", "/var/tmp"}
	liveBelow   = []string{"/etc", "/usr", "/boot", "/run", "/lost+found", "/var/lib", "/var/log", "/var/run", "/var/cache", "/var/spool", "/snap", "/nix"}
	// liveHome are below HOME: settings, programs and credentials.
	liveHome = []string{".config", ".local", ".ssh", ".gnupg", ".aws", ".kube", ".docker", ".cache"}
)

// checkLive refuses directories that hold more than a project: the environment
// could change what runs on the host, or litterbox itself.
func (e *Engine) checkLive(ctx context.Context, top string) error {
	refuse := func(why string) error {
		return fault.New(fault.Unsupported, "cannot make an environment of %q: %s", top, why).
			WithHint("litterbox env shell ~/project")
	}
	if state := e.Store.Shared(); overlaps(top, state) {
		return refuse("litterbox's own state lies in " + state)
	}
	if slices.Contains(liveExactly, top) {
		return refuse("it is a system directory, or holds the directories of users")
	}
	for _, dir := range slices.Concat(forbiddenWorkspaces, liveBelow) {
		if within(top, dir) {
			return refuse("it is a system directory")
		}
	}
	home := callerOf(ctx).Home
	if real, err := filepath.EvalSymlinks(home); home != "" && err == nil {
		home = real
	}
	if home != "" && home != "/" && within(home, top) {
		return refuse("it is your home directory, or holds it")
	}
	for _, name := range liveHome {
		if home != "" && within(top, filepath.Join(home, name)) {
			return refuse("it holds settings, programs or credentials of yours")
		}
	}
	return nil
}

// environments is the same engine for live environments.
func (e *Engine) environments() (*Engine, error) {
	below, err := e.Store.Environments()
	if err != nil {
		return nil, err
	}
	other := *e
	other.Store = below
	return &other, nil
}

// EnvironmentShell runs a command in the live environment of a project, which it
// makes or makes whole again first. Commands of many callers share one view.
func (e *Engine) EnvironmentShell(ctx context.Context, r EnvironmentRequest) (result ExecResult, err error) {
	found, err := e.projectAt(ctx, r.Path)
	if err != nil {
		return ExecResult{}, err
	}
	found.live.WritableGit = r.WritableGit
	if e, err = e.environments(); err != nil {
		return ExecResult{}, err
	}
	r.Exec.Name, r.Exec.Dir, r.Exec.Kind, r.Exec.NoCommit = sandbox.EnvironmentName(found.top), found.top, "env", true
	if r.Exec.WorkDir == "" {
		r.Exec.WorkDir = found.below
	}
	ctx, call, err := e.record(ctx, "env", found.top, r.Exec.Name, map[string]any{
		"command": r.Exec.command(ctx, e), "env": names(r.Exec.Env), "workdir": r.Exec.WorkDir, "writable_git": r.WritableGit,
	})
	if err != nil {
		return ExecResult{}, err
	}
	defer func() { err = call.end("", &result.Exit.Code, err) }()
	p, err := e.environment(ctx, found, r.Exec.AllowDegraded)
	if err != nil {
		return ExecResult{}, err
	}
	if err := e.finishCycles(ctx, p); err != nil {
		return ExecResult{}, err
	}
	end, err := e.shareGit(ctx, p)
	if err != nil {
		return ExecResult{}, err
	}
	began := time.Now()
	result, err = e.execute(ctx, p, r.Exec)
	result.Environment = p.record.Name
	notes, endErr := end()
	if err == nil {
		notes = append(notes, e.refusedHere(ctx, p, began)...)
	}
	result.Notes = append(result.Notes, notes...)
	return result, errors.Join(err, endErr)
}

// environmentPatience bounds how long a shell waits for another command that is
// making or deleting the environment.
const environmentPatience = 30 * time.Second

// environment finds the environment of a project, or makes it. Anything that a dead
// command left half-made is removed first.
func (e *Engine) environment(ctx context.Context, found project, allowDegraded bool) (*place, error) {
	name := sandbox.EnvironmentName(found.top)
	for deadline := time.Now().Add(environmentPatience); ; {
		p, err := e.tryEnvironment(ctx, found, name, allowDegraded)
		var other *underway
		if !errors.As(err, &other) || time.Now().After(deadline) {
			return p, err
		}
		select {
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Canceled, ctx.Err(), "cannot wait for environment %s", name)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// underway says that another command is making or deleting the environment.
type underway struct{ error }

func (u *underway) Unwrap() error { return u.error }

func (e *Engine) tryEnvironment(ctx context.Context, found project, name string, allowDegraded bool) (*place, error) {
	for range 2 {
		id, err := e.Store.Claimed(found.gitDir, name)
		if err != nil {
			return nil, err
		}
		if id == "" {
			return e.makeEnvironment(ctx, found, name, allowDegraded)
		}
		record, err := e.sandbox(ctx, id)
		if err == nil && record.Repository != found.top {
			return nil, fault.New(fault.AlreadyExists, "cannot make an environment of %q: that of %s has the same name, %s", found.top, record.Repository, name).
				WithHint("litterbox env delete %s", quoteCommand([]string{record.Repository}))
		}
		if err == nil && (record.State == sandbox.Creating || record.State == sandbox.Deleting) && process.Alive(record.Holder) {
			return nil, &underway{fault.New(fault.Conflict, "environment %s is still %s", name, record.State).WithHint("wait a moment, then litterbox env list")}
		}
		if err == nil && record.State != sandbox.Creating && record.State != sandbox.Deleting {
			return e.openEnvironment(ctx, record, found)
		}
		if err := e.dropEnvironment(ctx, found, name, id, record); err != nil {
			return nil, err
		}
	}
	return nil, &underway{fault.New(fault.Conflict, "environment %s is being made by another command", name).WithHint("wait a moment, then litterbox env list")}
}

// dropEnvironment removes an unusable environment: the next one is made again.
func (e *Engine) dropEnvironment(ctx context.Context, found project, name, id string, record *sandbox.Sandbox) error {
	if held, err := e.claimHeld(found.gitDir, name, id); record == nil && (err != nil || held) {
		return err
	}
	if record == nil {
		// Its maker may have written the record since it was looked for.
		if _, err := e.sandbox(ctx, id); err == nil {
			return nil
		}
		record = &sandbox.Sandbox{ID: id, Name: name, Repository: found.top, GitDir: found.gitDir, Driver: e.Drivers.Default(), Live: &found.live}
	}
	p, err := e.livePlace(ctx, record)
	if err != nil {
		return err
	}
	// Its directory, which holds its locks, may have been removed.
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot clear away environment %s", name)
	}
	return e.removeEnvironment(ctx, p)
}

func (e *Engine) livePlace(ctx context.Context, record *sandbox.Sandbox) (*place, error) {
	d, err := e.Drivers.Find(record.Driver)
	if err != nil {
		return nil, err
	}
	return e.place(record, e.memory().At(ctx, record.GitDir, record.Repository, record.Base), d), nil
}

// openEnvironment prepares the work in an existing environment. Its write
// permissions change at its next start.
func (e *Engine) openEnvironment(ctx context.Context, record *sandbox.Sandbox, found project) (*place, error) {
	p, err := e.livePlace(ctx, record)
	if err != nil {
		return p, err
	}
	state, _ := e.state(ctx, record)
	if state, err = e.remakeHome(ctx, p, state); err != nil {
		return nil, err
	}
	if state == sandbox.Stopped { // the configuration of this start counts
		if err := e.configure(ctx, p); err != nil {
			return nil, err
		}
		if err := e.renewPolicy(ctx, p); err != nil {
			return nil, err
		}
	}
	if *record.Live == found.live {
		return p, nil
	}
	if record.Live.WritableGit != found.live.WritableGit && state != sandbox.Stopped {
		if !found.live.WritableGit {
			p.note("git's configuration and what runs by itself can be written in this environment: it was started with --writable-git; litterbox env delete ends that")
			return p, nil
		}
		return nil, fault.New(fault.Conflict, "cannot make git's configuration writable: environment %s runs already", record.Name).
			WithHint("litterbox env delete %s, then repeat; the project's files stay", quoteCommand([]string{record.Repository}))
	}
	return p, e.update(ctx, p, func(r *sandbox.Sandbox) { live := found.live; r.Live = &live })
}

// renewPolicy makes the network that of the configuration again. Several shells
// may begin at the same moment.
func (e *Engine) renewPolicy(ctx context.Context, p *place) error {
	policy, err := e.policyOf(ctx, p.config)
	if err != nil {
		return err
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "policy")
	if err != nil {
		return err
	}
	defer unlock()
	return p.savePolicy(policy)
}

// makeEnvironment makes the record and the directories of a new one. Its place
// starts with its first command.
func (e *Engine) makeEnvironment(ctx context.Context, found project, name string, allowDegraded bool) (*place, error) {
	if fileExists(e.goneStore().Root) { // one that was deleted while its machine was away may still run there
		if err := e.sayGone(ctx); err != nil {
			return nil, err
		}
	}
	settings, err := e.settings(ctx, found.top, found.gitDir)
	if err != nil {
		return nil, err
	}
	chosen := settings.config.Driver
	if beside := e.Drivers.Live(cmp.Or(chosen, e.Drivers.Default())); beside != "" {
		chosen = beside
	}
	d, isolation, notes, err := e.chooseDriver(chosen, allowDegraded)
	if err != nil {
		return nil, err
	}
	if !d.Traits().Live {
		return nil, fault.New(fault.Unsupported, "cannot make an environment: the %s driver cannot show a directory of this machine as it is", d.Name()).
			WithHint("litterbox doctor --driver %s", d.Name())
	}
	what := found.live
	record := &sandbox.Sandbox{
		Name: name, Repository: found.top, GitDir: found.gitDir, Driver: d.Name(), Isolation: isolation, Live: &what,
		State: sandbox.Creating, CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	policy, err := e.policyOf(ctx, settings.config)
	if err != nil {
		return nil, err
	}
	if record.Image, err = e.chooseBase(ctx, settings.config, found.top, d, false); err != nil {
		return nil, err
	}
	if err := e.claim(ctx, record); err != nil {
		if fault.KindOf(err) == fault.AlreadyExists { // another shell was faster
			err = &underway{err}
		}
		return nil, err
	}
	p := e.place(record, e.memory().At(ctx, found.gitDir, found.top, ""), d)
	p.config, p.from = settings.config, settings.from
	p.note(append(notes, settings.notes...)...)
	if d.Ownership(record.ID).UpperUID < 0 {
		p.note("this environment has no user account of its own: only root makes one")
	}
	p.note("the files of " + found.top + " are those of this environment: changes there take effect at once")
	err = p.savePolicy(policy)
	if err == nil {
		err = e.makeHome(ctx, p)
	}
	if err == nil {
		record.State = sandbox.Stopped
		err = errors.Join(p.store.Save(record), p.store.SaveOrigin(record))
	}
	if err != nil {
		return nil, errors.Join(err, e.removeEnvironment(context.WithoutCancel(ctx), p))
	}
	return p, nil
}
