package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/egress"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/installer"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// offerInstall puts a program in the way of the package manager inside that asks the
// keeper to install packages, where they can be installed.
func (e *Engine) offerInstall(p *place, spec *driver.Spec) error {
	if err := p.renewed(); err != nil {
		return err
	}
	file := p.path(keeper.InstallsFile)
	var layers []string
	if spec.Base != nil {
		layers = spec.Base.Layers
	}
	m, found := managerOf(layers)
	packager, ok := p.driver.(driver.Packager)
	if !ok || e.Program == "" || p.canInstall() != nil || !found {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := seal.Encode(keeper.Installs{Program: e.Program, Dir: p.record.Repository})
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	dir := p.path(keeper.InstallsDir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755) // whatever the umask
	}
	for _, name := range installer.Names(m.name) {
		if linked := os.Symlink(packager.Guest(), filepath.Join(dir, name)); linked != nil && !errors.Is(linked, fs.ErrExist) {
			err = errors.Join(err, linked)
		}
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot let programs of sandbox %q ask for packages", p.record.Name)
	}
	spec.Mounts = append(spec.Mounts, driver.Mount{Source: dir, Target: installer.Dir})
	spec.Env["PATH"] = installer.Dir + ":" + spec.Env["PATH"]
	return nil
}

// installPolicy is what an installation may reach: the sources of packages when a
// person asks for it, and what the sandbox itself may reach when a program in it
// does.
func (e *Engine) installPolicy(p *place, what installation) (*egress.Policy, error) {
	if what.inside {
		own, err := e.policy(p)
		if err != nil {
			return nil, err
		}
		return &egress.Policy{Default: own.Default, Allow: slices.Clone(own.Allow), Deny: slices.Clone(own.Deny), Revision: 1}, nil
	}
	policy := &egress.Policy{Default: egress.Deny, Revision: 1}
	if len(what.packages) == 0 {
		return policy, nil
	}
	var err error
	policy.Allow, err = parseRules([]string{"preset:" + what.manager.name})
	return policy, err
}

// renewFile is there while a sandbox runs without packages that were installed
// meanwhile.
const renewFile = "renew-system"

// renewLater has the first command that finds nothing at work start the sandbox
// again.
func (p *place) renewLater() error { return os.WriteFile(p.path(renewFile), nil, 0o600) }

// renewPending starts a sandbox again that has packages to show, unless something
// is at work in it. A session of an agent that only holds it is no obstacle.
func (e *Engine) renewPending(ctx context.Context, p *place) error {
	if _, err := os.Lstat(p.path(renewFile)); err != nil {
		return nil
	}
	unlock, err := p.store.Lock(ctx, p.record.ID, "renew")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(p.path(renewFile)); err != nil {
		return nil // another command has done it during the wait
	}
	if state, _ := e.state(ctx, p.record); state == sandbox.Running {
		work, err := e.atWork(ctx, p)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(holding(work), func(w Work) bool { return w.Kind != WorkAgent }) {
			return nil
		}
		if len(work) > len(holding(work)) {
			err = e.quiesce(ctx, p) // services end in order
		}
		if err == nil {
			err = e.settle(ctx, p)
		}
		if err == nil {
			err = e.stop(ctx, p)
		}
		if err != nil {
			return err
		}
		p.note("stopped it to show the packages that were installed")
	}
	return p.renewed()
}

// renewed says that the sandbox shows all its packages, from its next start on.
func (p *place) renewed() error {
	if err := os.Remove(p.path(renewFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
