package namespace

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/cgroup"
	"github.com/litterbox-sandbox/litterbox/internal/driver/namespace/stage"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// handle is what a lease keeps of a place.
type handle struct {
	Guest sandbox.Process `json:"guest"`
	Shift int             `json:"shift,omitempty"`
	Group *cgroup.Group   `json:"group,omitempty"` // nil where none may be made
	// Layers are those of the base, below whatever was frozen; Whole is set where
	// the workspace is a copy of them.
	Layers []string `json:"layers,omitempty"`
	Whole  bool     `json:"whole,omitempty"`
}

const socketName = "guest.sock"

// Acquire implements driver.Driver. It starts the stages and waits for the
// guest's first byte.
func (d Driver) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	lease := driver.Lease{ID: spec.SandboxID, SandboxID: spec.SandboxID, StateDir: spec.StateDir, Traits: d.Traits()}
	if err := requireFull(); err != nil {
		return lease, err
	}
	config, err := stageConfig(spec)
	if err != nil {
		return lease, err
	}
	if err := prepare(spec, config); err != nil {
		return lease, driver.Seal(err, "cannot prepare the sandbox's directories")
	}
	switch runs, err := answers(ctx, spec.StateDir); {
	case err != nil:
		return lease, driver.Seal(err, "cannot find out whether the sandbox runs already")
	case runs:
		return lease, fault.Wrap("", driver.ErrLeaseUnavailable, "cannot start sandbox %q: it runs already", spec.Name)
	}
	listener, err := listen(spec.StateDir)
	if err != nil {
		return lease, driver.Seal(err, "cannot open the guest's socket")
	}
	defer listener.Close()
	group, kept, err := limited(spec)
	if err != nil {
		return lease, err
	}
	config.Limits = rlimits(spec.Limits, group)
	lease.InForce = withRlimits(kept, config.Limits)
	lease.Handle, err = begin(ctx, config, listener, group, func() { d.connectEarly(ctx, spec) })
	if err != nil {
		return lease, errors.Join(err, group.Remove())
	}
	return lease, nil
}

// limited makes the place's control group with its limits in force, so that
// its first process begins below them.
func limited(spec driver.Spec) (*cgroup.Group, driver.InForce, error) {
	group, err := cgroup.Make(cgroup.Find(), groupName(spec.SandboxID), spec.Limits)
	if err != nil {
		return nil, nil, driver.Seal(err, "cannot limit the sandbox")
	}
	kept, err := group.Set(spec.Limits, spec.StateDir)
	if err != nil {
		return nil, nil, errors.Join(driver.Seal(err, "cannot limit the sandbox"), group.Remove())
	}
	return group, kept, nil
}

// begin starts the place and describes it.
func begin(ctx context.Context, config stage.Config, listener *os.File, group *cgroup.Group, connected func()) ([]byte, error) {
	pid, err := start(ctx, config, listener, group, connected)
	if err != nil {
		return nil, err
	}
	identity, err := process.Identify(pid)
	if err != nil {
		return nil, fault.Wrap("", driver.ErrMachineLost, "cannot find the guest that just started")
	}
	_, base := frozen.Split(config.StateDir, config.Workspace.Layers)
	return json.Marshal(handle{Guest: identity, Shift: config.Shift, Group: group, Layers: base, Whole: len(base) == 0})
}

// connectEarly hands out a connection that waits in the guest's socket.
func (Driver) connectEarly(ctx context.Context, spec driver.Spec) {
	if spec.Early == nil {
		return
	}
	if conn, err := dialGuest(ctx, spec.StateDir); err == nil {
		spec.Early(conn)
	}
}

func stageConfig(spec driver.Spec) (stage.Config, error) {
	config := stage.Config{
		Root: filepath.Join(spec.StateDir, "root"), StateDir: spec.StateDir, Hostname: spec.Name,
		Workspace: spec.Workspace, Home: spec.Home, User: spec.User, Mounts: spec.Mounts, Caches: spec.Caches, Base: spec.Base,
		Etc: etcFiles(spec), Nested: spec.Nested, GuestKey: spec.GuestKey, HostKey: spec.HostKey,
	}
	config.Program = cmp.Or(spec.Program, "/proc/self/exe")
	if realRoot() {
		config.Shift = shiftFor(spec.SandboxID)
	}
	config.Quotas = stage.QuotasOf(config.Nested)
	for key, value := range spec.Env {
		config.Env = append(config.Env, key+"="+value)
	}
	sort.Strings(config.Env)
	return config, stand(&config, spec)
}

// stand has the place stand on what was frozen, whatever of that the layers of
// the workspace name: the record is what counts, and what is pending is finished
// before anything is mounted.
func stand(config *stage.Config, spec driver.Spec) error {
	own := Driver{}.Ownership(spec.SandboxID)
	b := frozen.Box{Dir: spec.StateDir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}, Whole: len(spec.Workspace.Layers) == 0}
	r, err := b.Settled()
	if err != nil {
		return driver.Seal(err, "cannot read what the sandbox stands on")
	}
	config.Frozen = frozen.LayersOf(spec.StateDir, r.Stack)
	if !b.Whole {
		_, base := frozen.Split(spec.StateDir, spec.Workspace.Layers)
		config.Workspace.Layers = slices.Concat(config.Frozen.Upper, base)
	}
	return nil
}

// start makes the sandbox's first process and returns its host pid once the
// guest that it becomes serves. connected is called when the guest's socket
// has somebody who will answer on it.
func start(ctx context.Context, config stage.Config, listener *os.File, group *cgroup.Group, connected func()) (int, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return 0, err
	}
	input, inputWriter, err := os.Pipe()
	if err != nil {
		return 0, driver.Seal(err, "cannot start the sandbox")
	}
	defer input.Close()
	defer inputWriter.Close()
	status, statusWriter, err := os.Pipe()
	if err != nil {
		return 0, driver.Seal(err, "cannot start the sandbox")
	}
	defer status.Close()
	defer statusWriter.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, driver.Seal(err, "cannot start the sandbox")
	}
	defer null.Close()

	verb, attr, dir := stage.VerbAssemble, ownNamespaces(config), "/"
	if config.Shift != 0 {
		verb, attr, dir = stage.VerbEnter, shiftedNamespaces(config), "" // where Outside stands
	}
	var child *os.Process
	begin := func() (int, error) {
		err := group.Start(attr, func() (err error) {
			child, err = os.StartProcess(config.Program, []string{"litterbox-guest", verb}, &os.ProcAttr{
				Dir: dir, Env: []string{"GOMAXPROCS=1"}, Sys: attr, Files: []*os.File{null, null, null, input, listener, statusWriter},
			})
			return err
		})
		statusWriter.Close() // the child has its own; ours would hide its end
		if err != nil {
			return 0, fmt.Errorf("cannot start its first process: %w", err)
		}
		connected()
		return child.Pid, nil
	}
	if config.Shift == 0 {
		_, err = begin()
	} else {
		err = stage.Outside(config, begin)
	}
	if err == nil {
		go func() {
			// A child that died early shows on the status pipe, not here.
			_, _ = inputWriter.Write(data)
			inputWriter.Close()
		}()
		stop := context.AfterFunc(ctx, func() { _ = child.Kill(); status.Close() })
		err = awaitReady(bufio.NewReader(status))
		// Once it has begun, the kill may come at any moment: a guest that said
		// that it is ready just before would be handed out to die.
		if !stop() && err == nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		if child != nil {
			_ = child.Kill() // it may be gone already
			_, _ = child.Wait()
		}
		if ctx.Err() != nil {
			return 0, fault.Wrap(fault.Canceled, ctx.Err(), "cannot start the sandbox")
		}
		// Whether it was this start or the machine that is to be mended.
		if why := (Driver{}).Try(); why != nil {
			return 0, why
		}
		return 0, fault.Wrap("", driver.Joined(driver.ErrLeaseUnavailable, err), "cannot start the sandbox").
			WithHint("litterbox doctor")
	}
	pid := child.Pid
	// Its zombie goes when the keeper does, which is right after the guest.
	return pid, child.Release()
}

// ownNamespaces are those of an ordinary user's sandbox: its first process does
// everything, as root of its own user namespace.
func ownNamespaces(config stage.Config) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: config.User.UID, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: config.User.GID, HostID: os.Getegid(), Size: 1}},
		AmbientCaps: stage.AmbientCapabilities(),
	}
}

// shiftedNamespaces are those of a sandbox of root's, whose mounts [stage.Outside]
// makes: the process takes a copy of them when they are complete.
func shiftedNamespaces(config stage.Config) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings:                []syscall.SysProcIDMap{{ContainerID: config.User.UID, HostID: config.Shift, Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{ContainerID: config.User.GID, HostID: config.Shift, Size: 1}},
		GidMappingsEnableSetgroups: true, // the supplementary groups of root must go
		AmbientCaps:                stage.AmbientCapabilities(),
	}
}

func awaitReady(status *bufio.Reader) error {
	kind, err := status.ReadByte()
	if err != nil {
		return errors.New("its first process ended without a word")
	}
	switch kind {
	case stage.StatusReady:
		return nil
	case stage.StatusError:
		text, err := io.ReadAll(status)
		return errors.Join(errors.New(string(text)), err)
	}
	return fmt.Errorf("it said %q, which nobody understands", kind)
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

// answers reports whether a guest serves on the sandbox's socket: two guests on
// one upper directory would spoil it. No socket, or one without a listener, is a
// no; that this process cannot ask, for lack of descriptors, is an error.
func answers(ctx context.Context, stateDir string) (bool, error) {
	conn, err := dialGuest(ctx, stateDir)
	switch {
	case err == nil:
		return true, conn.Close()
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return false, nil
	case errors.Is(err, unix.EAGAIN): // its queue is full
		return true, nil
	}
	return false, err
}
