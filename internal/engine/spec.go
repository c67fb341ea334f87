package engine

import (
	"context"
	"maps"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// descriptorsVariable is for tests: "off" makes places of this machine as if they
// shared no kernel with it, so that their connections go over streams of the wire.
const descriptorsVariable = "LITTERBOX_DESCRIPTORS"

// spec describes the place of a sandbox. Layers are made when fresh; a keeper
// that only attaches does not need them.
func (e *Engine) spec(ctx context.Context, p *place, fresh bool) (driver.Spec, error) {
	spec := driver.Spec{SandboxID: p.record.ID, Name: p.record.Name, StateDir: p.dir}
	if !fresh {
		return spec, nil
	}
	err := e.configure(ctx, p)
	if err == nil {
		p.store = e.Store.Durable(p.config.Durability == config.Strict)
		err = p.limit()
	}
	if err != nil {
		return spec, err
	}
	if err := e.arrange(ctx, p); err != nil {
		return spec, err
	}
	own, caller := p.driver.Ownership(p.record.ID), callerOf(ctx)
	spec.Home = homeInside(caller, p.record.Repository)
	spec.User = innerUser(caller, own)
	spec.Nested = p.config.Security.Nested
	spec.VM = vmOf(p.config.VM)
	spec.Streams = caller.Get(descriptorsVariable) == "off"
	if p.record.Image != nil {
		if err := e.addBase(ctx, p, own, &spec); err != nil {
			return spec, err
		}
	}
	if spec.System, err = e.system(p); err != nil {
		return spec, err
	}
	if p.record.Live != nil {
		spec.Workspace, err = p.liveWorkspace()
	} else if p.record.Layers, err = e.layers(ctx, p); err == nil {
		spec.Workspace = driver.Workspace{Path: p.record.Repository, Layers: p.record.Layers, Upper: p.files().Upper(), Work: p.files().Work()}
	}
	if err != nil {
		return spec, err
	}
	if p.copied() && p.record.Live == nil {
		if err := e.fill(ctx, p); err != nil {
			return spec, err
		}
		spec.Workspace.Layers = nil
	}
	source, bundles := hostRoots(caller)
	roots, err := p.writeRoots(caller, source, bundles)
	if err != nil {
		return spec, err
	}
	if p.driver.Traits().Mounts != sandbox.MountsAny {
		e.addSurroundings(p, caller, &spec, nil)
		p.mountable(&spec)
		p.noteUnshared("its isolation mounts nothing")
		if !p.driver.Traits().Lends {
			p.noteUngiven()
			return spec, nil
		}
		spec.Lent = keeper.RootsLent(p.dir)
		if err := p.offerSSHAgent(caller, &spec); err != nil {
			return spec, err
		}
		return spec, p.addSecrets(ctx, &spec)
	}
	e.addSurroundings(p, caller, &spec, roots.env)
	e.noteRefusedShares(p, caller)
	if err := p.addSecrets(ctx, &spec); err != nil {
		return spec, err
	}
	spec.Mounts = append(spec.Mounts, roots.mounts...)
	if err := p.offerSSHAgent(caller, &spec); err != nil {
		return spec, err
	}
	spec.Mounts = append(spec.Mounts, e.clientMounts(p)...)
	return spec, e.offerInstall(p, &spec)
}

// addSurroundings adds what the host lends, and the environment that points there;
// roots makes programs find the certificates.
func (e *Engine) addSurroundings(p *place, caller *caller.Caller, spec *driver.Spec, roots map[string]string) (mounts []Mount) {
	search := caller.Get("PATH")
	mounts = e.mounts(p, caller, spec.Home, search)
	for _, mount := range mounts {
		spec.Mounts = append(spec.Mounts, driver.Mount{Source: mount.Path, Target: mount.Path, Writable: mount.Writable})
	}
	spec.Env = map[string]string{
		"HOME": spec.Home, "USER": spec.User.Name, "LOGNAME": spec.User.Name, "SHELL": spec.User.Shell,
		"PATH": searchInside(search, *spec), "LITTERBOX": p.record.Name,
		// npm, also offline, and pnpm ask the registry for a newer version of themselves.
		// The network refuses it, and what it refuses is said, although nothing is amiss.
		"npm_config_update_notifier": "false",
	}
	maps.Copy(spec.Env, roots)
	if p.record.Image != nil {
		maps.Copy(spec.Env, baseEnv(p.record.Image, spec.Home))
	}
	maps.Copy(spec.Env, p.config.Container.Env)
	firstInPath(spec.Env, spec.Home, p.config.Golden.Tools)
	spec.Caches = e.packageCaches(p, caller, spec.Home, spec.Env, mounts)
	return mounts
}

// visible lists what of the host a sandbox would see were it started now.
func (e *Engine) visible(p *place, caller *caller.Caller) []Mount {
	spec := driver.Spec{Home: homeInside(caller, p.record.Repository), Workspace: driver.Workspace{Path: p.record.Repository}}
	mounts := e.addSurroundings(p, caller, &spec, nil)
	return append(mounts, p.cacheMounts(spec.Caches)...)
}

// configure loads the configuration for this start, once.
func (e *Engine) configure(ctx context.Context, p *place) error {
	found, err := e.settings(ctx, p.record.Repository, p.record.GitDir)
	if err != nil {
		return err
	}
	p.config, p.from = found.config, found.from
	p.note(found.notes...)
	return nil
}

// forbiddenWorkspaces are places where a project cannot stand at its own path,
// because the sandbox has something of its own there.
var forbiddenWorkspaces = []string{"/proc", "/sys", "/dev", "/bin", "/sbin", "/lib", "/lib64", "/.litterbox"}

// checkWorkspace refuses repositories whose path cannot exist inside.
func checkWorkspace(top string) error {
	refuse := func() error {
		return fault.New(fault.Unsupported, "cannot make a sandbox of the repository at %q: its path is a system directory", top).
			WithHint("git clone %s ~/project", top)
	}
	if top == "/" {
		return refuse()
	}
	for _, dir := range forbiddenWorkspaces {
		if top == dir || strings.HasPrefix(top, dir+"/") {
			return refuse()
		}
	}
	return nil
}

// homeInside is the path of HOME inside: the user's own, so that programs
// installed with absolute paths work. A repository that is the home directory, or
// holds it, would hide it; then HOME moves.
func homeInside(caller *caller.Caller, top string) string {
	home := caller.Home
	if home == "" || home == "/" {
		return "/home/litterbox"
	}
	if home == top || strings.HasPrefix(home+"/", top+"/") {
		return "/var/home"
	}
	return home
}

func innerUser(caller *caller.Caller, own driver.Ownership) driver.User {
	inner := driver.User{Name: "litterbox", UID: own.UID, GID: own.GID, Shell: "/bin/sh"}
	if caller.User != "" && !caller.Root && !strings.ContainsAny(caller.User, ":\n") {
		inner.Name = caller.User
	}
	if shell := caller.Get("SHELL"); strings.HasPrefix(shell, "/bin/") || strings.HasPrefix(shell, "/usr/bin/") {
		inner.Shell = shell
	}
	return inner
}

// passedOn are the variables of the client that enter with each command;
// LC_* do too. Everything else stays out: credentials live in variables.
var passedOn = []string{"TERM", "COLORTERM", "LANG", "TZ", "NO_COLOR"}

// clientEnv picks from the client's environment what may enter. An image need
// not have the host's locales.
func clientEnv(environ []string, image bool) []string {
	var out []string
	for _, entry := range environ {
		key, _, ok := strings.Cut(entry, "=")
		if !ok {
			continue
		}
		locale := key == "LANG" || strings.HasPrefix(key, "LC_")
		pass := locale
		for _, name := range passedOn {
			pass = pass || key == name
		}
		pass = pass && !(locale && image)
		if pass {
			out = append(out, entry)
		}
	}
	return out
}
