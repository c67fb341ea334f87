package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Keeps lists the limits that a group in these hierarchies keeps.
func Keeps(where []Hierarchy) []string {
	var names []string
	g := &Group{}
	for _, h := range where {
		g.Parts = append(g.Parts, Part{Version: h.Version, Controllers: h.Controllers})
	}
	for _, name := range sandbox.LimitNames() {
		if g.keeper(name) != "" {
			names = append(names, name)
		}
	}
	return names
}

// keeper says what keeps a limit: "cgroup v1", "cgroup v2" or nothing.
func (g *Group) keeper(limit string) string {
	controller := map[string]string{
		sandbox.LimitMemory: memory, sandbox.LimitPIDs: pids, sandbox.LimitCPUs: cpu, sandbox.LimitDiskIO: blkio,
	}[limit]
	p := g.part(controller)
	switch {
	case p == nil:
		return ""
	case limit == sandbox.LimitDiskIO && p.Version == 1:
		// Version 1 only sees reads and direct writes; writeback from the page cache
		// is charged to no one (blkio-controller.rst).
		return ""
	}
	return "cgroup v" + strconv.Itoa(p.Version)
}

// Lacks reports whether nothing in the group keeps a limit; nil is not a group.
func (g *Group) Lacks(limit string) bool { return g == nil || g.keeper(limit) == "" }

// Set puts limits in force and returns what keeps which. A limit that is not
// set is lifted. Controllers that were taken away are first taken back, as far
// as possible. disk is any directory on the device that disk-io is about.
func (g *Group) Set(limits sandbox.Limits, disk string) (map[string]string, error) {
	steps := []struct {
		limit      string
		controller string
		set        func(*Part) error
	}{
		{sandbox.LimitMemory, memory, func(p *Part) error { return p.setMemory(limits.Memory) }},
		{sandbox.LimitPIDs, pids, func(p *Part) error { return p.set("pids.max", bound(limits.PIDs, "max")) }},
		{sandbox.LimitCPUs, cpu, func(p *Part) error { return p.setCPUs(limits.CPUs) }},
		{sandbox.LimitDiskIO, blkio, func(p *Part) error { return p.setDiskIO(limits.DiskIO, disk) }},
	}
	for _, p := range g.Parts {
		if p.Version == 2 {
			handOn(filepath.Dir(p.Dir), p.taken())
		}
	}
	kept := map[string]string{}
	for _, step := range steps {
		p := g.part(step.controller)
		if p == nil {
			continue
		}
		if err := step.set(p); err != nil {
			return nil, fmt.Errorf("cannot set %s to %s: %w", step.limit, limits.Text(step.limit), err)
		}
		if by := g.keeper(step.limit); by != "" && limits.Get(step.limit) > 0 {
			kept[step.limit] = by
		}
	}
	return kept, nil
}

func (p *Part) set(file, text string) error { return write(filepath.Join(p.Dir, file), text) }

// bound formats a limit, or the text that stands for none.
func bound(n int64, none string) string {
	if n <= 0 {
		return none
	}
	return strconv.FormatInt(n, 10)
}

// setMemory counts swap too, where the kernel can: a limit that pushes a
// program out to a slow disk would not protect the host from it.
func (p *Part) setMemory(bytes int64) error {
	if p.Version == 2 {
		swap := "max"
		if bytes > 0 {
			swap = "0"
		}
		err := p.set("memory.max", bound(bytes, "max"))
		if swapErr := p.set("memory.swap.max", swap); err == nil && !errors.Is(swapErr, os.ErrNotExist) {
			err = swapErr
		}
		return err
	}
	const file, both = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	text := bound(bytes, "-1")
	err := p.set(file, text)
	above := errors.Is(err, unix.EINVAL) // the limit of the sum, which must grow first
	if above {
		err = nil
	}
	if bothErr := p.set(both, text); err == nil && !errors.Is(bothErr, os.ErrNotExist) {
		err = bothErr
	}
	if err == nil && above {
		err = p.set(file, text)
	}
	return err
}

// period is the kernel's own, in microseconds (sched-bwc.rst).
const period = 100_000

func (p *Part) setCPUs(n float64) error {
	quota := int64(n * period)
	if p.Version == 2 {
		return p.set("cpu.max", bound(quota, "max")+" "+strconv.Itoa(period))
	}
	return errors.Join(p.set("cpu.cfs_period_us", strconv.Itoa(period)), p.set("cpu.cfs_quota_us", bound(quota, "-1")))
}

func (p *Part) setDiskIO(bytes int64, disk string) error {
	device, err := deviceOf(disk)
	if err != nil && bytes <= 0 {
		return nil // nothing can be limited there, and nothing should be
	}
	if err != nil {
		return err
	}
	if p.Version == 2 {
		rate := bound(bytes, "max")
		return p.set("io.max", device+" rbps="+rate+" wbps="+rate)
	}
	rate := device + " " + bound(bytes, "0") // zero removes the rule
	return errors.Join(p.set("blkio.throttle.read_bps_device", rate), p.set("blkio.throttle.write_bps_device", rate))
}

// deviceOf is the whole disk below a directory, as "major:minor": partitions
// are not throttled.
func deviceOf(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", err
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	sys, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil {
		return "", fmt.Errorf("%s lies on no block device of its own", dir)
	}
	if _, err := os.Stat(filepath.Join(sys, "partition")); err == nil {
		number = read(filepath.Join(filepath.Dir(sys), "dev"))
	}
	return number, nil
}
