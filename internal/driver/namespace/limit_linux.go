package namespace

import (
	"context"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// byRlimit is InForce's word for a limit that setrlimit(2) keeps.
const byRlimit = "rlimit"

// groupName is the name of a sandbox's control group, in every hierarchy.
func groupName(sandboxID string) string { return "litterbox-" + sandboxID }

// Limit implements driver.Driver. Control groups keep what they can; of the
// rest, the kernel's limits for processes keep pids and open-files.
func (d Driver) Limit(_ context.Context, lease driver.Lease, limits sandbox.Limits) (driver.InForce, error) {
	place, err := local.Place[handle](lease)
	if err != nil {
		return nil, err
	}
	if !process.Alive(place.Guest) {
		return nil, fault.Wrap("", driver.ErrMachineLost, "cannot limit the sandbox")
	}
	files, err := place.openFiles(limits)
	if err != nil {
		return nil, err
	}
	if limits.DiskIO > 0 && place.Group.Lacks(sandbox.LimitDiskIO) && slices.Contains(cgroup.Keeps(cgroup.Find()), sandbox.LimitDiskIO) {
		return nil, fault.Wrap("", driver.ErrUnsupported, "cannot begin to limit disk-io while the sandbox runs").
			WithHint("stop the sandbox; the limit applies from its next start")
	}
	kept, err := place.inGroup(limits, lease.StateDir)
	if err != nil {
		return nil, err
	}
	maps.Copy(kept, files)
	if kept[sandbox.LimitPIDs] == "" && limits.PIDs > 0 && countsPIDs() {
		if err := place.limitPIDs(limits.PIDs); err != nil {
			return nil, err
		}
		kept[sandbox.LimitPIDs] = byRlimit
	}
	return kept, nil
}

// inGroup sets the limits that the place's control group keeps.
func (h handle) inGroup(limits sandbox.Limits, stateDir string) (driver.InForce, error) {
	if h.Group == nil {
		return driver.InForce{}, nil
	}
	kept, err := h.Group.Set(limits, stateDir)
	if errors.Is(err, unix.EBUSY) {
		return nil, fault.New(fault.Conflict, "cannot limit the sandbox: it uses more at this moment: %v", err)
	}
	if err != nil {
		return nil, driver.Seal(err, "cannot limit the sandbox")
	}
	return kept, nil
}

// openFiles checks the limit that every process inherited from the guest.
func (h handle) openFiles(limits sandbox.Limits) (driver.InForce, error) {
	if limits.OpenFiles <= 0 {
		return nil, nil
	}
	var now unix.Rlimit
	if err := unix.Prlimit(h.Guest.PID, unix.RLIMIT_NOFILE, nil, &now); err != nil {
		return nil, driver.Seal(err, "cannot read the sandbox's limit of open files")
	}
	if now.Max > uint64(limits.OpenFiles) {
		return nil, fault.Wrap("", driver.ErrUnsupported, "cannot change open-files while the sandbox runs").
			WithHint("stop the sandbox; the limit applies from its next start")
	}
	return driver.InForce{sandbox.LimitOpenFiles: byRlimit}, nil
}

// countsPIDs reports whether RLIMIT_NPROC counts the sandbox's processes alone.
// Since kernel 5.14 each user namespace has its own count; before, all of the
// user's processes on the machine were counted together.
func countsPIDs() bool {
	major, minor := kernelVersion()
	return major > 5 || major == 5 && minor >= 14 || realRoot()
}

// limitPIDs changes the limit of every process inside; children inherit it.
func (h handle) limitPIDs(most int64) error {
	want := unix.Rlimit{Cur: uint64(most), Max: uint64(most)}
	for _, t := range tasks(h) {
		var now unix.Rlimit
		if err := unix.Prlimit(t.pid, unix.RLIMIT_NPROC, nil, &now); err == nil && now == want {
			continue
		}
		err := unix.Prlimit(t.pid, unix.RLIMIT_NPROC, &want, nil)
		switch {
		case errors.Is(err, unix.ESRCH):
		case errors.Is(err, unix.EPERM) && t.pid == h.Guest.PID:
			return fault.Wrap("", driver.ErrUnsupported, "cannot raise pids while the sandbox runs").
				WithHint("stop the sandbox; the limit applies from its next start")
		case err != nil && t.pid == h.Guest.PID:
			return driver.Seal(err, "cannot limit the sandbox's processes")
		}
	}
	return nil
}

// rlimits returns the limits that the stage sets before the guest starts.
func rlimits(limits sandbox.Limits, group *cgroup.Group) stage.Limits {
	own := stage.Limits{OpenFiles: limits.OpenFiles, Memory: limits.Memory}
	if group.Lacks(sandbox.LimitPIDs) && countsPIDs() {
		own.PIDs = limits.PIDs
	}
	return own
}

// withRlimits adds the limits set by the stage to those kept by the group.
func withRlimits(kept driver.InForce, own stage.Limits) driver.InForce {
	if own.PIDs > 0 {
		kept[sandbox.LimitPIDs] = byRlimit
	}
	if own.OpenFiles > 0 {
		kept[sandbox.LimitOpenFiles] = byRlimit
	}
	return kept
}

// keeps lists the limits that can be kept here.
func keeps(where []cgroup.Hierarchy) []string {
	names := append(cgroup.Keeps(where), sandbox.LimitOpenFiles)
	if countsPIDs() && !slices.Contains(names, sandbox.LimitPIDs) {
		names = append(names, sandbox.LimitPIDs)
	}
	return names
}
