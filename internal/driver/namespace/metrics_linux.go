package namespace

import (
	"bytes"
	"context"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
)

// CollectMetrics implements driver.Driver: from the control group, and from
// /proc for the rest.
func (d Driver) CollectMetrics(_ context.Context, lease driver.Lease) (driver.Metrics, error) {
	m := driver.Unmeasured()
	place, err := local.Place[handle](lease)
	if err != nil {
		return m, err
	}
	if !process.Alive(place.Guest) {
		return m, fault.Wrap("", driver.ErrMachineLost, "cannot measure the sandbox")
	}
	m.Uptime = sinceBoot() - ticks(place.Guest.StartTime)
	if place.Group != nil {
		u := place.Group.Usage()
		m.CPU, m.Memory, m.Processes, m.Threads = u.CPU, u.Memory, u.Processes, u.Threads
		m.Read, m.Written, m.OOMKills, m.RefusedPIDs = u.Read, u.Written, u.OOMKills, u.RefusedPIDs
		m.Unlimited = !place.Group.Whole()
	}
	if m.CPU >= 0 && m.Memory >= 0 && m.Processes >= 0 && m.Threads >= 0 {
		return m, nil
	}
	added := add(tasks(place))
	if m.CPU < 0 {
		m.CPU = added.cpu
	}
	if m.Memory < 0 {
		m.Scratch = scratch(place.Guest.PID)
		m.Memory = added.memory + m.Scratch + max(0, memoryFiles(added.pids)-added.shared)
	}
	if m.Processes < 0 {
		m.Processes = added.processes
	}
	if m.Threads < 0 {
		m.Threads = added.threads
	}
	return m, nil
}

// sum is what processes use together.
type sum struct {
	cpu                time.Duration
	memory             int64 // with page tables
	shared             int64 // of it: files in memory that are mapped, as far as was checked
	processes, threads int
	pids               []int
}

// smallProcess is the size below which the exact share of shared pages is not worth
// reading.
const smallProcess = 8 << 20

// exactTime bounds that reading: the kernel walks a process's page tables for it.
const exactTime = 20 * time.Millisecond

func add(all []task) sum {
	var s sum
	deadline := time.Now().Add(exactTime)
	for _, t := range all {
		s.cpu += ticks(t.CPU)
		if t.Over() {
			continue
		}
		s.processes++
		s.threads += t.Threads
		share := t.Resident * int64(os.Getpagesize())
		if share > smallProcess && len(all) > 2 && time.Now().Before(deadline) {
			if exact, shared, ok := proportional(t.pid); ok {
				share = exact
				s.shared += shared
			}
		}
		if time.Now().Before(deadline) {
			share += pageTables(t.pid)
		}
		s.memory += share
		s.pids = append(s.pids, t.pid)
	}
	return s
}

// proportional reads Pss of proc_pid_smaps_rollup(5): pages that several
// processes share count in parts; shared is that of files in memory (5.10). A
// process that may not be inspected has none.
func proportional(pid int) (all, shared int64, ok bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return 0, 0, false
	}
	all, ok = pss(data)
	shared, _ = kib(data, "Pss_Shmem:")
	return all, shared, ok
}

func pss(rollup []byte) (int64, bool) { return kib(rollup, "Pss:") }

// kib reads a line such as "VmPTE:  12 kB", in bytes.
func kib(text []byte, key string) (int64, bool) {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"), 10, 64)
			if err != nil || kib < 0 || kib > math.MaxInt64>>10 {
				return 0, false
			}
			return kib << 10, true
		}
	}
	return 0, false
}

// scratch is the content of the place's file systems in memory.
func scratch(guest int) int64 {
	var bytes int64
	for _, dir := range []string{"/dev/shm", "/run"} {
		var fs unix.Statfs_t
		at := "/proc/" + strconv.Itoa(guest) + "/root" + dir
		if unix.Statfs(at, &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
			bytes += int64(fs.Blocks-fs.Bfree) * fs.Bsize
		}
	}
	return bytes
}

// ticks turns clock ticks into time: USER_HZ is 100 on every architecture
// litterbox runs on.
func ticks(n uint64) time.Duration { return time.Duration(n) * 10 * time.Millisecond }

// sinceBoot is the present on the clock of proc_pid_stat(5) field 22.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
