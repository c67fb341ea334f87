//go:build linux

package namespace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/app/child"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/drivertest"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace"
)

// The driver starts its stages from /proc/self/exe, which is the test. Like a
// keeper, it adopts processes that a stage leaves behind.
func TestMain(m *testing.M) {
	if child.IsChild(os.Args) {
		os.Exit(child.Main(os.Args))
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestContract(t *testing.T) { drivertest.RunTests(t, newEnv) }

// Without overlays everything else is the same.
func TestContractOfCopies(t *testing.T) {
	drivertest.RunTests(t, func(t testing.TB) drivertest.Env {
		env := newEnv(t)
		env.Driver = func() driver.Driver { return namespace.Driver{Copy: true} }
		return env
	})
}

func BenchmarkContract(b *testing.B) { drivertest.RunBenchmarks(b, newEnv) }

func newEnv(t testing.TB) drivertest.Env {
	return drivertest.Env{
		Dir:    stateDir(t),
		Driver: func() driver.Driver { return namespace.Driver{} },
		Kill: func(_ context.Context, lease driver.Lease) error {
			var handle struct {
				Guest struct {
					PID int `json:"pid"`
				} `json:"guest"`
			}
			if err := json.Unmarshal(lease.Handle, &handle); err != nil || handle.Guest.PID <= 1 {
				return fmt.Errorf("cannot find the guest in %s: %w", lease.Handle, err)
			}
			return endAndReap(handle.Guest.PID)
		},
		Deafen: deafen,
		Places: places,
	}
}

// stateDir is a directory whose cleanup is not stopped by the overlay's work
// directory, which the kernel makes without any permissions.
func stateDir(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	return dir
}

// endAndReap kills and waits: the guest is our child or was adopted.
func endAndReap(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	_, err := syscall.Wait4(pid, nil, 0, nil)
	return err
}

// places lists running children of this process: each place is one, and so is a
// forgotten stage.
func places() ([]string, error) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return nil, err
	}
	var running []string
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(data)) {
			status, err := os.ReadFile("/proc/" + pid + "/status")
			if err == nil && !strings.Contains(string(status), "State:\tZ") {
				running = append(running, pid)
			}
		}
	}
	slices.Sort(running)
	return running, nil
}

// deafen moves the guest's socket away, and back.
func deafen(_ context.Context, lease driver.Lease, deaf bool) error {
	from, to := filepath.Join(lease.StateDir, "guest.sock"), filepath.Join(lease.StateDir, "moved.sock")
	if !deaf {
		from, to = to, from
	}
	return os.Rename(from, to)
}
