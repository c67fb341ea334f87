package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/live"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// The mount namespace of an environment that runs: a link to it, or its path in another
// machine.
const (
	namespaceFile = "namespace.mnt"
	namespaceFar  = "namespace.far"
)

// standsForUser gives an environment that root has just started its user account
// and the namespace file. It works without either; a missing one becomes a note.
func (e *Engine) standsForUser(ctx context.Context, p *place, lease *sandbox.Lease) {
	if p.record.Live == nil || lease == nil {
		return
	}
	if far, is := p.driver.(driver.FarJoiner); is {
		p.standsFar(ctx, far, lease)
		return
	}
	uid := p.driver.Ownership(p.record.ID).UpperUID
	joiner, joins := p.driver.(driver.Joiner)
	if uid < 0 || !joins {
		return
	}
	if err := (live.Accounts{}).Make(ctx, p.record.Name, uid); err != nil {
		p.note("this environment has no user account of its own: " + err.Error())
	}
	from, err := joiner.Namespaces(p.driverLease(lease))
	if err == nil {
		err = relink(filepath.Join(from, "mnt"), p.path(namespaceFile))
	}
	if err != nil {
		p.note("nsenter cannot join this environment: " + err.Error())
	}
}

// farPatience is how long a machine may take to say where the namespaces are.
const farPatience = 5 * time.Second

// standsFar notes where root of another machine finds the namespace of an environment
// there. It works without.
func (p *place) standsFar(ctx context.Context, far driver.FarJoiner, lease *sandbox.Lease) {
	ctx, cancel := context.WithTimeout(ctx, farPatience)
	defer cancel()
	there, err := far.NamespacesThere(ctx, p.driverLease(lease))
	if err == nil {
		err = os.WriteFile(p.path(namespaceFar), []byte(path.Join(there, "mnt")), 0o600)
	}
	if err != nil {
		_ = os.Remove(p.path(namespaceFar)) // an earlier one is of another place
	}
}

// relink makes link point to target, whatever it was before.
func relink(target, link string) error {
	if was, err := os.Readlink(link); err == nil && was == target {
		return nil
	}
	temp := filepath.Join(filepath.Dir(link), "."+filepath.Base(link))
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", link)
	}
	err := os.Symlink(target, temp)
	if err == nil {
		err = os.Rename(temp, link)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot make %q", link)
	}
	return nil
}

// namespaceOf is the namespace file of an environment, in its machine; empty where none
// can be joined.
func (e *Engine) namespaceOf(record *sandbox.Sandbox, state sandbox.State) string {
	if state != sandbox.Running && state != sandbox.Paused {
		return ""
	}
	dir := e.Store.SandboxDir(record.ID)
	if there, err := os.ReadFile(filepath.Join(dir, namespaceFar)); err == nil {
		return string(there)
	}
	file := filepath.Join(dir, namespaceFile)
	if _, err := os.Lstat(file); err != nil {
		return ""
	}
	return file
}
