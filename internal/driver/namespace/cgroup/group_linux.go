package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Group is one sandbox's group, in each hierarchy that it needs. It is data:
// any process can find the same group with it.
type Group struct {
	Parts []Part `json:"parts"`
}

// Part is the group in one hierarchy.
type Part struct {
	Version     int      `json:"version"`
	Dir         string   `json:"dir"`
	Controllers []string `json:"controllers"`
}

// leaf is where the processes are in version 2: the limits are one level above,
// outside anything that a cgroup namespace inside could ever show.
const leaf = "inside"

// Make makes a group where the hierarchies are. disk-io costs one more at each
// start, so it is left out if there is no such limit. A group left under the
// name by a crash is removed first, and processes that still run in it are
// killed. If it stays busy, the new one gets another name ([spares]).
func Make(where []Hierarchy, name string, limits sandbox.Limits) (*Group, error) {
	needs := []string{memory, pids, freezer, cpuacct, cpu}
	if limits.DiskIO > 0 {
		needs = append(needs, blkio)
	}
	clearing := &clearing{where: where, name: name}
	g := &Group{}
	for _, h := range where {
		missing := func(c string) bool { return slices.Contains(needs, c) && g.part(c) == nil }
		if !slices.ContainsFunc(h.Controllers, missing) {
			continue
		}
		part := Part{Version: h.Version, Dir: filepath.Join(h.Parent, name), Controllers: h.Controllers}
		if h.Version == 2 {
			part.Controllers = handOn(h.Parent, h.Controllers)
		}
		if err := part.make(clearing); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot make the control group %s: %w", part.Dir, err), g.Remove())
		}
		g.Parts = append(g.Parts, part)
	}
	return g, nil
}

// make makes the part under the first of its names that is free or can be freed.
func (p *Part) make(leftovers *clearing) error {
	var err error
	for _, dir := range spares(p.Dir) {
		p.Dir = dir
		err = os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) {
			if err = leftovers.remove(*p); err == nil {
				err = os.Mkdir(dir, 0o755)
			}
		}
		if !errors.Is(err, ErrBusy) {
			break
		}
	}
	if err == nil && p.Version == 2 {
		if err = os.Mkdir(filepath.Join(p.Dir, leaf), 0o755); err != nil {
			err = errors.Join(err, os.Remove(p.Dir))
		}
	}
	return err
}

// part is the part of the group with a controller; nil if there is none.
func (g *Group) part(controller string) *Part {
	for i := range g.Parts {
		if slices.Contains(g.Parts[i].Controllers, controller) {
			return &g.Parts[i]
		}
	}
	return nil
}

// Whole reports whether the group still has its controllers. In version 2 the
// manager of the parent may take them away, and the limits with them: systemd
// does at a daemon-reload, if no sibling unit needs them.
func (g *Group) Whole() bool {
	return !slices.ContainsFunc(g.Parts, func(p Part) bool { return p.Version == 2 && len(p.taken()) > 0 })
}

// taken lists the controllers that a version 2 part had and no longer has.
func (p Part) taken() []string {
	has := strings.Fields(read(filepath.Join(p.Dir, "cgroup.controllers")))
	var gone []string
	for _, c := range p.Controllers {
		if c != freezer && c != cpuacct && !slices.Contains(has, v2Name(c)) {
			gone = append(gone, c)
		}
	}
	return gone
}

// Start runs start, which makes a process with attr on the calling thread. The
// process begins in the group, and so do all its descendants.
//
// In version 1 our thread enters, forks and leaves again. A thread that moves
// itself needs no lock against forks (kernel 5.19, cgroup_procs_write_start),
// while moving a process from outside waits for an RCU grace period: 6 ms and
// more against 0.2 were measured. Version 2 forks into the group
// (CLONE_INTO_CGROUP, kernel 5.7).
func (g *Group) Start(attr *syscall.SysProcAttr, start func() error) error {
	if dir := g.unified(); dir != "" {
		fd, err := os.Open(filepath.Join(dir, leaf))
		if err != nil {
			return err
		}
		defer fd.Close()
		attr.UseCgroupFD, attr.CgroupFD = true, int(fd.Fd())
	}
	// The runtime makes no new thread from a locked one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := g.enter()
	if err == nil {
		err = start()
	}
	return errors.Join(err, g.leave())
}

// unified is the group's directory in version 2; empty if it has none.
func (g *Group) unified() string {
	for _, p := range g.Parts {
		if p.Version == 2 {
			return p.Dir
		}
	}
	return ""
}

func (g *Group) enter() error {
	for _, p := range g.Parts {
		if p.Version == 1 {
			if err := write(filepath.Join(p.Dir, "tasks"), "0"); err != nil {
				return fmt.Errorf("cannot enter the control group %s: %w", p.Dir, err)
			}
		}
	}
	return nil
}

func (g *Group) leave() error {
	var all error
	for _, p := range g.Parts {
		if p.Version == 1 {
			all = errors.Join(all, write(filepath.Join(filepath.Dir(p.Dir), "tasks"), "0"))
		}
	}
	return all
}

// Processes lists the host's numbers of the group's processes.
func (g *Group) Processes() []int {
	if len(g.Parts) == 0 {
		return nil
	}
	var found []int
	for line := range strings.Lines(read(g.Parts[0].procs())) { // the same in each
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

func (p Part) procs() string {
	if p.Version == 2 {
		return filepath.Join(p.Dir, leaf, "cgroup.procs")
	}
	return filepath.Join(p.Dir, "cgroup.procs")
}

// Remove removes the group once its last process has gone. A group that does
// not exist is not an error; one that stays busy is [ErrBusy].
func (g *Group) Remove() error {
	if g == nil {
		return nil
	}
	var all, busy error
	deadline := time.Now().Add(removePatience)
	for _, p := range g.Parts {
		if err := p.remove(deadline); errors.Is(err, ErrBusy) {
			busy = err
		} else {
			all = errors.Join(all, err)
		}
	}
	if all == nil {
		all = busy
	}
	return all
}

// write writes a control file in one write(2), and does not make it. A signal
// aborts some of these writes (memory.limit_in_bytes, while it must free
// memory), and the Go runtime sends signals to its own threads; the next write
// goes on where this one stopped.
func write(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for {
		if _, err = unix.Write(fd, []byte(text)); !errors.Is(err, unix.EINTR) {
			return errors.Join(err, unix.Close(fd))
		}
	}
}
