package cgroup

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy says that a group could not be removed because something is still in
// it. The group is harmless: nothing in it is a sandbox's work. It
// is removed at the sandbox's next start or by litterbox doctor --fix.
var ErrBusy = errors.New("something is still in it")

// removePatience is how long killed processes may take to leave a group. On a
// machine that swaps, a process can take seconds to die.
const removePatience = 10 * time.Second

// busyPatience is the same for a start, which can use another name.
const busyPatience = 3 * time.Second

// spareNames is how many names there are besides the first one. Each leftover
// that stays busy takes one.
const spareNames = 8

// spares lists the names that a group may have: its own, and those to use when
// a busy leftover has taken it. [Empty] finds the group under each of them.
func spares(dir string) []string {
	names := []string{dir}
	for n := 2; n < spareNames+2; n++ {
		names = append(names, dir+spareMark+strconv.Itoa(n))
	}
	return names
}

// spareMark separates a group's own name from the number of a spare one. No
// sandbox id contains it.
const spareMark = "."

// Sweep removes every group of that name that this process could have made, for
// a start that was cut off before it recorded one. Processes that are still in
// it are killed: their start is over. A group that stays busy is left for
// later.
func Sweep(where []Hierarchy, name string) error {
	leftovers := &clearing{where: where, name: name}
	var all error
	for _, h := range where {
		for _, dir := range spares(filepath.Join(h.Parent, name)) {
			if err := leftovers.remove(Part{Version: h.Version, Dir: dir}); !errors.Is(err, ErrBusy) {
				all = errors.Join(all, err)
			}
		}
	}
	return all
}

// clearing removes what an earlier start has left under its name.
type clearing struct {
	where    []Hierarchy
	name     string
	deadline time.Time // zero until one was found busy
}

func (c *clearing) remove(p Part) error {
	err := p.remove(time.Time{})
	if !errors.Is(err, ErrBusy) {
		return err
	}
	if c.deadline.IsZero() {
		c.end()
		c.deadline = time.Now().Add(busyPatience)
	}
	return p.remove(c.deadline)
}

// end kills every process in the leftovers, in every hierarchy: a process frozen
// in one of them keeps the others busy.
func (c *clearing) end() {
	for _, h := range c.where {
		for _, dir := range spares(filepath.Join(h.Parent, c.name)) {
			p := Part{Version: h.Version, Dir: dir, Controllers: h.Controllers}
			members := p.members()
			if len(members) > 0 && (h.Version == 2 || slices.Contains(h.Controllers, freezer)) {
				_ = p.freeze(false) // in version 1 a frozen process does not die
			}
			for _, pid := range members {
				p.kill(pid)
			}
		}
	}
}

// members lists the host's numbers of the processes in the part.
func (p Part) members() []int {
	var found []int
	for line := range strings.Lines(read(p.procs())) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 0 {
			found = append(found, pid)
		}
	}
	return found
}

// kill kills a process while it is a member: its number may be given to a
// process outside at any moment.
func (p Part) kill(pid int) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	if slices.Contains(p.members(), pid) {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) // a survivor keeps the group busy
	}
	_ = unix.Close(pidfd)
}

// remove removes the part with the groups that the sandbox has made in it, and
// waits until the deadline while it is busy.
func (p Part) remove(deadline time.Time) error {
	cleared := false
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 50*time.Millisecond) {
		var err error
		if p.Version == 2 {
			err = unix.Rmdir(filepath.Join(p.Dir, leaf))
		}
		if err == nil || errors.Is(err, unix.ENOENT) {
			err = unix.Rmdir(p.Dir)
		}
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EBUSY) && !cleared:
			p.clearBelow()
			cleared = true // and then once more at once, regardless of the deadline
			continue
		case !errors.Is(err, unix.EBUSY):
			return fmt.Errorf("cannot remove the control group %s: %w", p.Dir, err)
		case !time.Now().Before(deadline):
			return fmt.Errorf("cannot remove the control group %s: %w", p.Dir, ErrBusy)
		}
		time.Sleep(pause)
		cleared = false
	}
}
