package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// shares is how many parts a user's quotas are cut into: the human keeps most
	// even when a sandbox takes all that it may. Under root it is no different,
	// though a sandbox has its own id there: the kernel also charges the creator
	// of the user namespace (kernel/ucount.c).
	shares = 4
	// innerNamespaces is how many an inner container engine may make.
	innerNamespaces = 1024
	// terminals is how many pseudo-terminals a sandbox may have. The kernel
	// counts those of all of them together, and keeps a reserve for the host.
	terminals = 512
)

// QuotasOf computes the quotas of a place.
func QuotasOf(nested bool) Quotas {
	q := Quotas{
		Instances: share(hostLimit("max_inotify_instances", "max_user_instances")),
		Watches:   share(hostLimit("max_inotify_watches", "max_user_watches")),
	}
	if nested {
		q.Namespaces = innerNamespaces
	}
	return q
}

// share is a part of a limit, and never so little that nothing could run.
func share(limit int64) int64 { return max(limit/shares, min(limit, 8)) }

// hostLimit is the smaller of a limit in our own user namespace and in the
// first one.
func hostLimit(own, first string) int64 {
	limit := int64(math.MaxInt32)
	for _, path := range []string{filepath.Join("/proc/sys/user", own), filepath.Join("/proc/sys/fs/inotify", first)} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // a kernel without it
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil {
			limit = min(limit, n)
		}
	}
	return limit
}

// setNamespace puts in force the quotas that the sandbox's user namespace
// keeps, through the files below proc, which show those of the process that
// opens them (namespaces(7), "The /proc/sys/user directory").
func (q Quotas) setNamespace(proc string) error {
	limits := map[string]int64{
		"max_inotify_instances": q.Instances, "max_inotify_watches": q.Watches,
		"max_fanotify_groups": 0, "max_fanotify_marks": 0, // fanotify_init is refused
	}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"} {
		limits["max_"+kind+"_namespaces"] = q.Namespaces
	}
	for name, limit := range limits {
		err := os.WriteFile(filepath.Join(proc, "sys/user", name), []byte(strconv.FormatInt(limit, 10)), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without it
			return fmt.Errorf("cannot limit %s: %w", name, err)
		}
	}
	return nil
}

// shareLimits puts in force the quotas kept by process limits that the kernel
// counts together.
func shareLimits() error {
	for name, resource := range map[string]int{
		"pending signals": unix.RLIMIT_SIGPENDING, "message queues": unix.RLIMIT_MSGQUEUE, "locked memory": unix.RLIMIT_MEMLOCK,
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return fmt.Errorf("cannot read the limit of %s: %w", name, err)
		}
		if now.Max == unix.RLIM_INFINITY {
			continue // then no one runs out of it
		}
		most := now.Max / shares
		if err := unix.Prlimit(0, resource, &unix.Rlimit{Cur: min(now.Cur, most), Max: most}, nil); err != nil {
			return fmt.Errorf("cannot limit %s: %w", name, err)
		}
	}
	return nil
}
