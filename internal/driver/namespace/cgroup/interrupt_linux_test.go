package cgroup_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// A memory limit below present use takes its time, and the runtime's own
// signals come all the while.
func TestSignalsDoNotInterruptLimits(t *testing.T) {
	eachVersion(t, func(t *testing.T, where []cgroup.Hierarchy) {
		if !slices.Contains(cgroup.Keeps(where), sandbox.LimitMemory) {
			t.Skip("no memory can be limited")
		}
		g, _ := group(t, where, sandbox.Limits{})
		attr := &syscall.SysProcAttr{}
		fill := exec.Command("dd", "if=/dev/zero", "of="+filepath.Join(t.TempDir(), "big"), "bs=1M", "count=48", "conv=fsync", "status=none")
		fill.SysProcAttr = attr
		if err := g.Start(attr, fill.Start); err != nil {
			t.Fatal(err)
		}
		if err := fill.Wait(); err != nil {
			t.Fatal(err)
		}
		var storm sync.WaitGroup
		over := make(chan struct{})
		storm.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(100 * time.Microsecond):
				}
				threads, _ := os.ReadDir("/proc/self/task")
				for _, thread := range threads {
					if id, err := strconv.Atoi(thread.Name()); err == nil {
						_ = unix.Tgkill(os.Getpid(), id, unix.SIGURG)
					}
				}
			}
		})
		// Busy: files on a memory file system cannot be freed.
		_, err := g.Set(sandbox.Limits{Memory: 8 << 20}, "/")
		close(over)
		storm.Wait()
		if err != nil && !errors.Is(err, unix.EBUSY) {
			t.Error(err)
		}
	})
}
