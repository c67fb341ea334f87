package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CanFreeze reports whether groups in these hierarchies can be frozen.
func CanFreeze(where []Hierarchy) bool {
	for _, h := range where {
		if (&Group{Parts: []Part{{Controllers: h.Controllers}}}).CanFreeze() {
			return true
		}
	}
	return false
}

// CanFreeze reports whether this group can be frozen.
func (g *Group) CanFreeze() bool { return g.part(freezer) != nil }

// Freeze stops every process of the group and waits until all of them are
// frozen. If ctx ends first they go on, and its error is returned.
func (g *Group) Freeze(ctx context.Context) error {
	p := g.part(freezer)
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		// Written again each time: in version 1 a group that was caught in the
		// middle tries again only then (freezer-subsystem.rst).
		err := ctx.Err()
		if err == nil {
			err = p.freeze(true)
		}
		if err == nil && p.frozen() {
			return nil
		}
		if err != nil {
			return errors.Join(err, p.freeze(false))
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Thaw lets the group go on. It is not an error if the group is gone, or is not frozen.
func (g *Group) Thaw() error {
	p := g.part(freezer)
	if p == nil {
		return nil
	}
	err := p.freeze(false)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) { // ENODEV: it was removed between open and write
		return nil
	}
	return err
}

// Frozen reports whether the group was told to freeze.
func (g *Group) Frozen() bool {
	p := g.part(freezer)
	switch {
	case p == nil:
		return false
	case p.Version == 2:
		return read(filepath.Join(p.Dir, "cgroup.freeze")) == "1"
	}
	state := read(filepath.Join(p.Dir, "freezer.state"))
	return state != "" && state != "THAWED"
}

func (p *Part) freeze(on bool) error {
	switch {
	case p.Version == 2 && on:
		return p.set("cgroup.freeze", "1")
	case p.Version == 2:
		return p.set("cgroup.freeze", "0")
	case on:
		return p.set("freezer.state", "FROZEN")
	}
	return p.set("freezer.state", "THAWED")
}

// frozen reports whether every process is frozen by now.
func (p *Part) frozen() bool {
	if p.Version == 2 {
		return strings.Contains(read(filepath.Join(p.Dir, "cgroup.events")), "frozen 1")
	}
	return read(filepath.Join(p.Dir, "freezer.state")) == "FROZEN"
}
