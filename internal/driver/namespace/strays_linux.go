package namespace

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// program is argv[0] of keepers and guests.
const program = "litterbox-guest"

// Strays lists processes of sandboxes below the state directory root for which
// known is false: their files were removed under them.
func (d Driver) Strays(root string, known func(sandboxID string) bool) ([]driver.Stray, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot list processes")
	}
	prefix := []byte(filepath.Join(root, "sandboxes") + "/")
	var strays []driver.Stray
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		role, id := place(pid, prefix)
		if id == "" || known(id) {
			continue
		}
		identity, err := process.Identify(pid)
		if err != nil {
			continue // it has just ended
		}
		strays = append(strays, driver.Stray{
			SandboxID: id, What: role + ", process " + strconv.Itoa(pid),
			End: func() error { return endStray(identity, id) },
		})
	}
	return append(strays, strayGroups(known)...), nil
}

// endUnrecorded ends all processes of a sandbox without a known lease.
func (d Driver) endUnrecorded(lease driver.Lease) ([]string, error) {
	found, err := d.Strays(filepath.Dir(filepath.Dir(lease.StateDir)), func(id string) bool { return id != filepath.Base(lease.StateDir) })
	if err != nil {
		return nil, err
	}
	var done []string
	for _, one := range found {
		if err := one.End(); err != nil {
			return done, err
		}
		done = append(done, "ended what an interrupted start had left running: "+one.What)
	}
	return done, nil
}

// place tells what a process is and which sandbox it belongs to, by its open
// files or mounts. An unreadable process belongs to another user.
func place(pid int, prefix []byte) (role, id string) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	cmdline, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	argv := bytes.Split(cmdline, []byte{0})
	if err != nil || len(argv) < 2 || string(argv[0]) != program {
		return "", ""
	}
	evidence, err := os.ReadFile(filepath.Join(dir, "mountinfo"))
	if string(argv[1]) == "keeper" {
		var log string
		log, err = os.Readlink(filepath.Join(dir, "fd", "2"))
		evidence = []byte(log)
	}
	_, rest, ok := bytes.Cut(evidence, prefix)
	if err != nil || !ok {
		return "", ""
	}
	id, _, _ = strings.Cut(string(rest), "/")
	return string(argv[1]), id
}

// endStray ends a process, paused or not, and removes its control group.
func endStray(identity sandbox.Process, id string) error {
	group := cgroup.Of(identity.PID, groupName(id))
	if err := errors.Join(group.Thaw(), kill(identity), group.Remove()); err != nil {
		return driver.Seal(err, "cannot end a process left by a sandbox that is gone")
	}
	return nil
}

// kill ends exactly that process.
func kill(identity sandbox.Process) error {
	pidfd, err := unix.PidfdOpen(identity.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot end process %d", identity.PID)
	}
	defer unix.Close(pidfd)
	if !process.Alive(identity) {
		return nil // its number was given to another one
	}
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fault.Wrap(fault.Unavailable, err, "cannot end process %d", identity.PID)
	}
	if !waitPidfd(context.Background(), pidfd, destroyGrace) {
		return fault.New(fault.Timeout, "cannot end process %d: it does not die", identity.PID)
	}
	return nil
}
