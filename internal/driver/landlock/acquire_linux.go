package landlock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/landlock/confine"
	"github.com/litterbox-sandbox/litterbox/internal/driver/local"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// handle is what a lease keeps of a place. The warden lives a little longer
// than the guest: until no process is left.
type handle struct {
	Warden sandbox.Process `json:"warden"`
}

func ownership() driver.Ownership {
	return driver.Ownership{UID: os.Geteuid(), GID: os.Getegid(), UpperUID: -1, UpperGID: -1}
}

// Acquire implements driver.Driver.
func (d Driver) Acquire(ctx context.Context, spec driver.Spec) (driver.Lease, error) {
	lease := driver.Lease{ID: spec.SandboxID, SandboxID: spec.SandboxID, StateDir: spec.StateDir, Traits: d.Traits()}
	if err := d.require(spec); err != nil {
		return lease, err
	}
	if err := prepare(spec); err != nil {
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
	warden, err := start(ctx, configOf(spec), listener)
	if err != nil {
		return lease, err
	}
	lease.InForce = inForce(spec.Limits)
	lease.Handle, err = json.Marshal(handle{Warden: warden})
	return lease, err
}

// require refuses a spec that the tier cannot satisfy.
func (d Driver) require(spec driver.Spec) error {
	if found := obstacles(); len(found) > 0 {
		return fault.Wrap("", driver.ErrLeaseUnavailable, "cannot isolate a sandbox here, not even in the degraded tier: %s", found[0].missing).
			WithHint("%s", found[0].mend)
	}
	refuse := func(what string) error {
		return fault.Wrap("", driver.ErrUnsupported, "cannot start sandbox %q in the degraded tier: %s", spec.Name, what).
			WithHint("litterbox doctor")
	}
	switch {
	case !spec.Degraded:
		return refuse("less isolation was not accepted (--allow-degraded accepts it)")
	case spec.Base != nil:
		return refuse("container.base-image needs mounts")
	case spec.Nested:
		return refuse("security.nested needs user namespaces")
	case spec.Workspace.Live != nil:
		return refuse("parts of a live directory cannot be protected without mounts")
	case len(spec.Workspace.Layers) > 0:
		return refuse("it was created with an overlay, and the tier mounts nothing")
	case len(spec.Caches) > 0:
		return refuse("package caches need mounts")
	}
	for _, mount := range spec.Mounts {
		if mount.Writable {
			return refuse(fmt.Sprintf("%q cannot be shared without a mount", mount.Source))
		}
		if mount.Source != mount.Target {
			return refuse(fmt.Sprintf("%q cannot stand at %q without a mount", mount.Source, mount.Target))
		}
	}
	return nil
}

// prepare makes the directories that persist. The workspace holds everything
// already, and must exist.
func prepare(spec driver.Spec) error {
	if _, err := os.Stat(spec.Workspace.Upper); err != nil {
		return err
	}
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(spec.StateDir, name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func configOf(spec driver.Spec) confine.Config {
	config := confine.Config{
		StateDir: spec.StateDir, Workspace: spec.Workspace, Home: spec.Home, OpenFiles: spec.Limits.OpenFiles,
		GuestKey: spec.GuestKey, HostKey: spec.HostKey, Program: cmp.Or(spec.Program, "/proc/self/exe"),
	}
	for _, mount := range spec.Mounts {
		config.Mounts = append(config.Mounts, mount.Source)
	}
	// The repository, all of litterbox's files, and the sockets of the user's
	// session.
	secret := []string{spec.Workspace.Path, filepath.Dir(filepath.Dir(spec.StateDir)), spec.StateDir}
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		secret = append(secret, runtime)
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) && home != "/" {
		config.Home = home // spec has it as it would be seen inside
	}
	for _, path := range secret {
		config.Protected = append(config.Protected, path)
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			config.Protected = append(config.Protected, real)
		}
	}
	if real, err := filepath.EvalSymlinks(config.Home); err == nil {
		config.Home = real
	}
	config.Moved = []confine.Moved{{From: spec.Workspace.Path, To: spec.Workspace.Upper}, {From: spec.Home, To: filepath.Join(spec.StateDir, "home")}}
	env := map[string]string{}
	for key, value := range spec.Env {
		env[key] = value
	}
	env["HOME"] = filepath.Join(spec.StateDir, "home")
	env["TMPDIR"] = filepath.Join(spec.StateDir, "tmp")
	for key, value := range env {
		config.Env = append(config.Env, key+"="+value)
	}
	sort.Strings(config.Env)
	return config
}

// start makes the warden and returns once the guest below it serves.
func start(ctx context.Context, config confine.Config, listener *os.File) (sandbox.Process, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return sandbox.Process{}, err
	}
	input, inputWriter, err := os.Pipe()
	if err != nil {
		return sandbox.Process{}, driver.Seal(err, "cannot start the sandbox")
	}
	defer input.Close()
	defer inputWriter.Close()
	status, statusWriter, err := os.Pipe()
	if err != nil {
		return sandbox.Process{}, driver.Seal(err, "cannot start the sandbox")
	}
	defer status.Close()
	defer statusWriter.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return sandbox.Process{}, driver.Seal(err, "cannot start the sandbox")
	}
	defer null.Close()
	child, err := process.StartPath(config.Program, []string{"litterbox-guest", confine.VerbWarden}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1"}, Sys: &syscall.SysProcAttr{Setsid: true},
		Files: []*os.File{null, null, null, input, listener, statusWriter},
	})
	statusWriter.Close() // the child has its own; ours would hide its end
	if err != nil {
		return sandbox.Process{}, driver.Seal(err, "cannot start the sandbox")
	}
	go func() {
		// A child that dies early shows on the status pipe, not here.
		_, _ = inputWriter.Write(data)
		inputWriter.Close()
	}()
	warden, err := process.Identify(child.Pid)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { status.Close() })
		err = local.Ready(status, confine.StatusReady, confine.StatusError)
		if !stop() && err == nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		_ = endWarden(context.WithoutCancel(ctx), warden) // it may be gone already
		_, _ = child.Wait()
		if ctx.Err() != nil {
			return warden, fault.Wrap(fault.Canceled, ctx.Err(), "cannot start the sandbox")
		}
		return warden, fault.Wrap("", driver.Joined(driver.ErrLeaseUnavailable, err), "cannot start the sandbox").WithHint("litterbox doctor")
	}
	return warden, child.Release()
}

// inForce returns the limits that the tier keeps: those of a single process.
func inForce(limits sandbox.Limits) driver.InForce {
	kept := driver.InForce{}
	if limits.OpenFiles > 0 {
		kept[sandbox.LimitOpenFiles] = "rlimit"
	}
	return kept
}
