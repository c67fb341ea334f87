//go:build linux

package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/app/child"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/drivertest"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// The outposts and their stages are started from /proc/self/exe, which is the
// test. It adopts the processes they leave behind.
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
	dir := stateDir(t)
	return drivertest.Env{
		Dir:    dir,
		Driver: func() driver.Driver { return remote.NewChild() },
		Kill:   kill,
		Deafen: func(_ context.Context, lease driver.Lease, deaf bool) error {
			from, to := filepath.Join(there(lease), "guest.sock"), filepath.Join(there(lease), "moved.sock")
			if !deaf {
				from, to = to, from
			}
			return os.Rename(from, to)
		},
		Places: func() ([]string, error) { return below(os.Getpid()), nil },
	}
}

// there is the directory of a place in its machine.
func there(lease driver.Lease) string {
	return filepath.Join(filepath.Dir(filepath.Dir(lease.StateDir)), "machines", "child", "sandboxes", lease.SandboxID)
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

// guestOf is the process that the machine's driver has made.
func guestOf(lease driver.Lease) (sandbox.Process, error) {
	var handle struct {
		Guest sandbox.Process `json:"guest"`
	}
	err := json.Unmarshal(lease.Handle, &handle)
	if err == nil && handle.Guest.PID <= 1 {
		err = errors.New("there is none")
	}
	return handle.Guest, err
}

func kill(ctx context.Context, lease driver.Lease) error {
	guest, err := guestOf(lease)
	if err != nil {
		return fmt.Errorf("cannot find the guest in %s: %w", lease.Handle, err)
	}
	if err := syscall.Kill(guest.PID, syscall.SIGKILL); err != nil {
		return err
	}
	for process.Alive(guest) && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // another process's child: there is nothing to wait on
	}
	return ctx.Err()
}

// below lists the processes below another, except outposts: each place is one,
// and so is a forgotten stage.
func below(pid int) []string {
	var running []string
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, one := range strings.Fields(string(data)) {
			var number int
			if _, err := fmt.Sscan(one, &number); err != nil {
				continue
			}
			if isOutpost(one) {
				running = append(running, below(number)...)
				continue
			}
			status, err := os.ReadFile("/proc/" + one + "/status")
			if err == nil && !strings.Contains(string(status), "State:\tZ") {
				running = append(running, one)
			}
		}
	}
	return running
}

func isOutpost(pid string) bool {
	line, err := os.ReadFile("/proc/" + pid + "/cmdline")
	return err == nil && string(line) == "litterbox-guest\x00outpost\x00"
}
