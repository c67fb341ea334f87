package stage

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// set limits this process and with it everything inside. RLIMIT_NPROC counts
// the processes of this user in this user namespace (kernel 5.14), so it bounds
// the sandbox as a whole.
func (l Limits) set() error {
	for _, limit := range []struct {
		name     string
		resource int
		most     int64
	}{
		{"pids", unix.RLIMIT_NPROC, l.PIDs},
		{"open-files", unix.RLIMIT_NOFILE, l.OpenFiles},
	} {
		if limit.most <= 0 {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(limit.resource, &now); err != nil {
			return fmt.Errorf("cannot read the limit of %s: %w", limit.name, err)
		}
		// Never more than our parent may have.
		most := min(uint64(limit.most), now.Max)
		if err := unix.Prlimit(0, limit.resource, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return fmt.Errorf("cannot limit %s: %w", limit.name, err)
		}
	}
	if l.Core == nil {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil {
		return fmt.Errorf("cannot read the limit of core dumps: %w", err)
	}
	now.Cur = min(*l.Core, now.Max)
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, &now, nil); err != nil {
		return fmt.Errorf("cannot set the limit of core dumps: %w", err)
	}
	return nil
}

// shared bounds memory that belongs to no process: half of what the whole place
// may have, and an inode for each page or so of that.
func (l Limits) shared() string {
	if l.Memory <= 0 {
		return ""
	}
	return fmt.Sprintf(",size=%d,nr_inodes=%d", l.Memory/2, max(1024, l.Memory/(16<<10)))
}
