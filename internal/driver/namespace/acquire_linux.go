package namespace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// handle is what a lease keeps of a place.
type handle struct {
	Guest sandbox.Process `json:"guest"`
	Shift int             `json:"shift,omitempty"`
}

const socketName = "guest.sock"

// Acquire implements driver.Driver. It starts the stages and waits for the
// guest's first byte.
func (d Driver) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	lease := driver.Lease{ID: spec.SandboxID, SandboxID: spec.SandboxID, StateDir: spec.StateDir}
	if err := requireFull(); err != nil {
		if spec.Degraded {
			return lease, fault.Wrap("", joined(driver.ErrUnsupported, err), "cannot start sandbox %q: there is no degraded tier yet", spec.Name).
				WithHint("litterbox doctor")
		}
		return lease, err
	}
	config := stageConfig(spec)
	if err := prepare(spec, config); err != nil {
		return lease, seal(err, "cannot prepare the sandbox's directories")
	}
	if answers(ctx, spec.StateDir) {
		return lease, fault.Wrap("", driver.ErrLeaseUnavailable, "cannot start sandbox %q: it runs already", spec.Name)
	}
	listener, err := listen(spec.StateDir)
	if err != nil {
		return lease, seal(err, "cannot open the guest's socket")
	}
	defer listener.Close()
	pid, err := start(ctx, config, listener)
	if err != nil {
		return lease, err
	}
	identity, err := process.Identify(pid)
	if err != nil {
		return lease, fault.Wrap("", driver.ErrMachineLost, "cannot find the guest that just started")
	}
	lease.Handle, err = json.Marshal(handle{Guest: identity, Shift: config.Shift})
	return lease, err
}

func stageConfig(spec driver.Spec) stage.Config {
	config := stage.Config{
		Root: filepath.Join(spec.StateDir, "root"), StateDir: spec.StateDir, Hostname: spec.Name,
		Workspace: spec.Workspace, Home: spec.Home, User: spec.User, Mounts: spec.Mounts,
		Nested: spec.Nested, GuestKey: spec.GuestKey, HostKey: spec.HostKey,
	}
	if realRoot() {
		config.Shift = shiftFor(spec.SandboxID)
	}
	for key, value := range spec.Env {
		config.Env = append(config.Env, key+"="+value)
	}
	sort.Strings(config.Env)
	return config
}

// start runs the first stage and returns the guest's host pid once it serves.
func start(ctx context.Context, config stage.Config, listener *os.File) (int, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return 0, err
	}
	input, inputWriter, err := os.Pipe()
	if err != nil {
		return 0, seal(err, "cannot start the sandbox")
	}
	defer input.Close()
	defer inputWriter.Close()
	status, statusWriter, err := os.Pipe()
	if err != nil {
		return 0, seal(err, "cannot start the sandbox")
	}
	defer status.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, seal(err, "cannot start the sandbox")
	}
	defer null.Close()

	attr := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWNS}
	if config.Shift == 0 {
		attr = &syscall.SysProcAttr{
			Setsid: true,
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
				unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: config.User.UID, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: config.User.GID, HostID: os.Getegid(), Size: 1}},
			AmbientCaps: stage.AmbientCapabilities(),
		}
	}
	child, err := os.StartProcess("/proc/self/exe", []string{"litterbox-guest", stage.VerbAssemble}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Sys: attr,
		Files: []*os.File{null, null, null, input, listener, statusWriter},
	})
	statusWriter.Close() // the child has its own; ours would hide its end
	if err != nil {
		return 0, fault.Wrap("", joined(driver.ErrLeaseUnavailable, err), "cannot start the sandbox's first process").
			WithHint("litterbox doctor")
	}
	go func() {
		// A child that died early shows on the status pipe, not here.
		_, _ = inputWriter.Write(data)
		inputWriter.Close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = child.Kill(); status.Close() })
	defer stop()
	pid, err := awaitReady(bufio.NewReader(status), child.Pid)
	if err != nil {
		_ = child.Kill() // it may be gone already
		if pid != child.Pid {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_, _ = child.Wait()
		if ctx.Err() != nil {
			return 0, fault.Wrap(fault.Canceled, ctx.Err(), "cannot start the sandbox")
		}
		return 0, fault.Wrap("", joined(driver.ErrLeaseUnavailable, err), "cannot start the sandbox").
			WithHint("litterbox doctor")
	}
	if pid != child.Pid {
		_, _ = child.Wait() // the first stage has ended; the guest is adopted
	} else {
		_ = child.Release()
	}
	return pid, nil
}

func awaitReady(status *bufio.Reader, pid int) (int, error) {
	for {
		kind, err := status.ReadByte()
		if err != nil {
			return pid, errors.New("its first process ended without a word")
		}
		switch kind {
		case stage.StatusReady:
			return pid, nil
		case stage.StatusProcess:
			line, err := status.ReadString('\n')
			if err != nil {
				return pid, errors.New("its second process did not start")
			}
			if pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
				return pid, err
			}
		case stage.StatusError:
			text, err := io.ReadAll(status)
			return pid, errors.Join(errors.New(string(text)), err)
		default:
			return pid, fmt.Errorf("it said %q, which nobody understands", kind)
		}
	}
}

// listen opens the socket on the host's side; the guest inherits it, so its
// path never exists inside, and a new keeper finds it after the first died.
func listen(stateDir string) (*os.File, error) {
	path := filepath.Join(stateDir, socketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var file *os.File
	err := process.ShortPath(stateDir, func(dir string) error {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
		if err != nil {
			return err
		}
		listener.SetUnlinkOnClose(false)
		file, err = listener.File()
		return errors.Join(err, listener.Close())
	})
	return file, err
}

// answers tells whether a guest serves on the sandbox's socket: two guests on
// one upper directory would spoil it.
func answers(ctx context.Context, stateDir string) bool {
	conn, err := dialGuest(ctx, stateDir)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// joined keeps the driver's error as the type and the foreign one as text.
func joined(sentinel *fault.Error, foreign error) error {
	return fault.Wrap("", sentinel, "%v", foreign)
}

// seal turns an error of the system into one of the driver's, with its text.
func seal(foreign error, text string) error {
	sentinel := driver.ErrLeaseUnavailable
	if errors.Is(foreign, unix.ENOSPC) || errors.Is(foreign, unix.EDQUOT) {
		sentinel = driver.ErrDiskFull
	}
	return fault.Wrap("", joined(sentinel, foreign), "%s", text)
}
