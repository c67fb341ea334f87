package namespace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
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
	Group *cgroup.Group   `json:"group,omitempty"` // nil when none may be made
	// Layers are those of the base, below all that was frozen; Whole is set when
	// the workspace is a copy of them.
	Layers []string `json:"layers,omitempty"`
	Whole  bool     `json:"whole,omitempty"`
}

// Acquire implements driver.Driver. It starts the stages and waits for the
// guest's first byte.
func (d Driver) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	lease := driver.Lease{ID: spec.SandboxID, SandboxID: spec.SandboxID, StateDir: spec.StateDir, Traits: d.Traits()}
	if err := requireFull(); err != nil {
		return lease, err
	}
	if spec.Streams {
		lease.Traits.Network = sandbox.NetworkStreams
	}
	config, err := stageConfig(spec)
	if err != nil {
		return lease, err
	}
	if err := prepare(spec, config); err != nil {
		return lease, driver.Seal(err, "cannot prepare the sandbox's directories")
	}
	switch runs, err := local.Answers(ctx, spec.StateDir); {
	case err != nil:
		return lease, driver.Seal(err, "cannot find out whether the sandbox runs already")
	case runs:
		return lease, fault.Wrap("", driver.ErrLeaseUnavailable, "cannot start sandbox %q: it runs already", spec.Name)
	}
	listener, err := local.Listen(spec.StateDir)
	if err != nil {
		return lease, driver.Seal(err, "cannot open the guest's socket")
	}
	defer listener.Close()
	group, kept, err := limited(spec)
	if err != nil {
		return lease, err
	}
	config.Limits = rlimits(spec.Limits, group)
	config.Limits.Core = spec.Core
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
	if conn, err := local.Dial(ctx, spec.StateDir); err == nil {
		spec.Early(conn)
	}
}

func stageConfig(spec driver.Spec) (stage.Config, error) {
	config := stage.Config{
		Root: filepath.Join(spec.StateDir, "root"), StateDir: spec.StateDir, Hostname: spec.Name,
		Workspace: spec.Workspace, Home: spec.Home, User: spec.User, Mounts: spec.Mounts, Caches: spec.Caches, Base: spec.Base, System: spec.System,
		Etc: etcFiles(spec), Nested: spec.Nested, Streams: spec.Streams, GuestKey: spec.GuestKey, HostKey: spec.HostKey,
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

// stand bases the place on what was frozen, no matter how much of that the
// layers of the workspace name: the record counts, and pending work is finished
// before anything is mounted.
func stand(config *stage.Config, spec driver.Spec) error {
	own := Driver{}.Ownership(spec.SandboxID)
	b := frozen.Box{Dir: spec.StateDir, Owner: frozen.Owner{UID: own.UpperUID, GID: own.UpperGID}, Whole: len(spec.Workspace.Layers) == 0}
	r, err := b.Settled()
	if err != nil {
		return driver.Seal(err, "cannot read what the sandbox stands on")
	}
	config.Frozen = frozen.LayersOf(spec.StateDir, r.Stack)
	if spec.System != nil && spec.System.Install {
		config.Frozen = frozen.Layers{Caches: config.Frozen.Caches} // nothing else of its sandbox
	}
	if !b.Whole {
		_, base := frozen.Split(spec.StateDir, spec.Workspace.Layers)
		config.Workspace.Layers = slices.Concat(config.Frozen.Upper, base)
	}
	return nil
}

// start makes the sandbox's first process and returns its host pid once the
// guest that it becomes serves. connected is called once there is a process
// that will answer on the guest's socket.
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
		verb, attr, dir = stage.VerbEnter, shiftedNamespaces(config), "" // where Outside is
	}
	var child *os.Process
	begin := func() (int, error) {
		err := group.Start(attr, func() (err error) {
			child, err = process.StartPath(config.Program, []string{"litterbox-guest", verb}, &os.ProcAttr{
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
			// A child that dies early shows on the status pipe, not here.
			_, _ = inputWriter.Write(data)
			inputWriter.Close()
		}()
		stop := context.AfterFunc(ctx, func() { _ = child.Kill(); status.Close() })
		err = local.Ready(status, stage.StatusReady, stage.StatusError)
		// Once it has begun, the kill may come at any moment: a guest that reported
		// ready just before would be handed out to die.
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
		// Find out whether to blame this start or the machine.
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

// ownNamespaces are the namespaces of an ordinary user's sandbox: its first
// process does everything, as root of its own user namespace.
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

// shiftedNamespaces are the namespaces of root's sandboxes, whose mounts
// [stage.Outside] makes: the process takes a copy of them when they are complete.
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
