//go:build linux

package landlock_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/litterbox-sandbox/litterbox/internal/driver/landlock"
)

// The driver starts its children from /proc/self/exe, which is the test. Like a
// keeper, it adopts processes that a warden leaves behind.
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

func newEnv(t testing.TB) drivertest.Env {
	return drivertest.Env{
		Dir:    t.TempDir(),
		Driver: func() driver.Driver { return landlock.Driver{} },
		Kill: func(_ context.Context, lease driver.Lease) error {
			var handle struct {
				Warden struct {
					PID int `json:"pid"`
				} `json:"warden"`
			}
			if err := json.Unmarshal(lease.Handle, &handle); err != nil || handle.Warden.PID <= 1 {
				return fmt.Errorf("cannot find the warden in %s: %w", lease.Handle, err)
			}
			if err := syscall.Kill(handle.Warden.PID, syscall.SIGKILL); err != nil {
				return err
			}
			_, err := syscall.Wait4(handle.Warden.PID, nil, 0, nil)
			return err
		},
		Deafen: deafen,
		Places: places,
	}
}

// places lists running children of this process.
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
