package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/live"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// namespaceFile is a link to the mount namespace of an environment that runs.
const namespaceFile = "namespace.mnt"

// standsForUser gives an environment that root has just started its user account
// and the namespace file. It works without either; a missing one becomes a note.
func (e *Engine) standsForUser(ctx context.Context, p *place, lease *sandbox.Lease) {
	uid := p.driver.Ownership(p.record.ID).UpperUID
	joiner, joins := p.driver.(driver.Joiner)
	if p.record.Live == nil || lease == nil || uid < 0 || !joins {
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

// namespaceOf is the namespace file of an environment; empty where none can be
// joined.
func (e *Engine) namespaceOf(record *sandbox.Sandbox, state sandbox.State) string {
	file := filepath.Join(e.Store.SandboxDir(record.ID), namespaceFile)
	if _, err := os.Lstat(file); err != nil || state != sandbox.Running && state != sandbox.Paused {
		return ""
	}
	return file
}
