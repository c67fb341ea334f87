package landlock

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/landlock/confine"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/driver/ruleset"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Capabilities implements driver.Driver.
func (d Driver) Capabilities() driver.Capabilities {
	tier := driver.Tier{Isolation: sandbox.IsolationDegraded, Available: true, Lacks: lacks()}
	for _, one := range obstacles() {
		tier.Available = false
		tier.Missing, tier.Mend = append(tier.Missing, one.missing), append(tier.Mend, one.mend)
	}
	return driver.Capabilities{
		Traits: d.Traits(), Limits: []string{sandbox.LimitOpenFiles}, Isolation: []driver.Tier{tier},
	}
}

// lacks lists what the tier does not isolate on this machine, and the
// consequences.
func lacks() []string {
	all := []string{
		"it shares the host's process table, users and IPC: names and command lines of the host's processes can be read inside",
		"names, sizes and times of the host's files can be asked for inside; what they hold cannot",
		"it has no network at all, not even its own loopback: no rule, port or service that listens works",
		"the workspace stands below litterbox's state directory, /tmp does not exist (TMPDIR does), and there are neither package caches nor base images",
		"memory and pids are kept by the keeper alone, and it cannot be paused",
	}
	if ruleset.ABI() < confine.SignalABI {
		all = append(all, "this kernel is older than 6.12: processes inside can signal every process of the same user")
	}
	return all
}

type obstacle struct{ missing, mend string }

// obstacles only asks the kernel, and is cheap.
func obstacles() []obstacle {
	if refused := process.Refused("openat2", "memfd_create", "pidfd_open"); len(refused) > 0 {
		return []obstacle{{"a filter of system calls refuses " + strings.Join(refused, ", ") + ", as an old container engine's or a service's does",
			"start litterbox where nothing filters it (systemd: no SystemCallFilter; a container: --security-opt seccomp=unconfined)"}}
	}
	switch abi := ruleset.ABI(); {
	case abi == 0:
		return []obstacle{{"Landlock is missing (not in this kernel, not in its list of modules, or blocked by a container)",
			"boot with lsm=landlock,… or run litterbox outside of the container"}}
	case abi < confine.MinABI:
		return []obstacle{{fmt.Sprintf("Landlock has version %d, and %d is needed (kernel 6.2)", abi, confine.MinABI), "install a kernel of 6.2 or newer"}}
	}
	return nil
}

// Try gives up the rights that a sandbox of this tier would, in a child that then ends.
func (Driver) Try() error {
	child, err := os.StartProcess("/proc/self/exe", []string{"litterbox-guest", confine.VerbTry}, &os.ProcAttr{Env: []string{}})
	if err != nil {
		return err
	}
	state, err := child.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("%s", state)
	}
	return err
}

// Limit implements driver.Driver.
func (Driver) Limit(_ context.Context, lease driver.Lease, limits sandbox.Limits) (driver.InForce, error) {
	place, err := local.Place[handle](lease)
	if err != nil {
		return nil, err
	}
	if !process.Alive(place.Warden) {
		return nil, fault.Wrap("", driver.ErrMachineLost, "cannot limit the sandbox")
	}
	if limits.OpenFiles > 0 {
		var now unix.Rlimit
		for _, pid := range process.Children(place.Warden.PID) {
			if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now) == nil && now.Max > uint64(limits.OpenFiles) {
				return nil, fault.Wrap("", driver.ErrUnsupported, "cannot change open-files while the sandbox runs").
					WithHint("stop the sandbox; the limit applies from its next start")
			}
		}
	}
	return inForce(limits), nil
}

// CollectMetrics implements driver.Driver: what /proc says about all processes
// below the warden.
func (Driver) CollectMetrics(_ context.Context, lease driver.Lease) (driver.Metrics, error) {
	m := driver.Unmeasured()
	place, err := local.Place[handle](lease)
	if err != nil {
		return m, err
	}
	if !process.Alive(place.Warden) {
		return m, fault.Wrap("", driver.ErrMachineLost, "cannot measure the sandbox")
	}
	m.CPU, m.Memory, m.Processes, m.Threads = 0, 0, 0, 0
	var count func(pid int)
	count = func(pid int) {
		s, err := process.ReadStat(pid)
		if err != nil {
			return // it has just ended
		}
		m.CPU += time.Duration(s.CPU) * (10 * time.Millisecond) // USER_HZ is 100
		if !s.Over() {
			m.Processes++
			m.Threads += s.Threads
			m.Memory += s.Resident * int64(os.Getpagesize())
		}
		for _, child := range process.Children(pid) {
			count(child)
		}
	}
	for _, guest := range process.Children(place.Warden.PID) {
		count(guest)
	}
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) == nil {
		m.Uptime = time.Duration(now.Nano()) - time.Duration(place.Warden.StartTime)*(10*time.Millisecond)
	}
	return m, nil
}
