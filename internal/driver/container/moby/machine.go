package moby

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	api "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// Where things are in a machine. All of it is in the volume, except the root file
// system, which is the image's and read-only.
const (
	home        = "/.litterbox-machine"
	state       = home + "/state"                   // the outpost's; everything else is root's
	outpostPath = home + "/program/litterbox-guest" // its name tells the program that we start it
	user        = "1000:1000"
)

// ensure makes sure that the machine runs. A container that is gone is made again
// on its volume, which holds all of its state; without the volume the machine is
// lost, and only a fresh start begins another.
func (s *session) ensure(ctx context.Context, fresh bool) error {
	if running, err := s.running(ctx); err != nil || running && !fresh {
		return err
	}
	// Commands and keepers come at the same time after a machine has ended.
	held, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	running, err := s.running(ctx)
	if err != nil || running && !fresh {
		return err
	}
	if !running {
		if err := s.clearMeeting(); err != nil {
			return err
		}
	}
	if err := s.create(ctx, fresh, true); err != nil {
		return err
	}
	if err := s.bring(ctx); err != nil {
		return err
	}
	return s.start(ctx)
}

// lock keeps other processes from making, starting and removing the machine until
// the lock is closed.
func (s *session) lock(ctx context.Context) (io.Closer, error) {
	dir := filepath.Join(s.order.Machine.State, "machines")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, driver.Seal(err, "cannot make the directory of machines")
	}
	held, err := os.OpenFile(filepath.Join(dir, s.order.Machine.Name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, driver.Seal(err, "cannot open the lock of a machine")
	}
	if err := lock.File(ctx, held); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
}

// running reports whether the container runs. One that is not there does not.
func (s *session) running(ctx context.Context) (bool, error) {
	name := s.order.Machine.Name
	found, err := s.client.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, s.sealed(err, "cannot look at the container "+name)
	}
	if err := s.ours(found.Container); err != nil {
		return false, err
	}
	st := found.Container.State
	if st != nil && st.Paused {
		return false, fault.Wrap("", driver.ErrUnreachable, "cannot use the container %s: it is paused", name).
			WithHint("%s unpause %s", s.order.Kind, name)
	}
	return st != nil && st.Running, nil
}

// ours refuses a container of our name that is not ours.
func (s *session) ours(c api.InspectResponse) error {
	if c.Config == nil || c.Config.Labels[container.LabelState] != s.order.Machine.State {
		return fault.Wrap("", driver.ErrUnreachable, "cannot use the container %s: it was not made for %s", s.order.Machine.Name, s.order.Machine.State).
			WithHint("%s rm %s", s.order.Kind, s.order.Machine.Name)
	}
	return nil
}

// create makes the container when it is gone and, for a new machine, its volume;
// with meeting it gets the directory of sockets.
func (s *session) create(ctx context.Context, fresh, meeting bool) error {
	m := s.order.Machine
	_, err := s.client.ContainerInspect(ctx, m.Name, client.ContainerInspectOptions{})
	if err == nil {
		return nil
	}
	if !cerrdefs.IsNotFound(err) {
		return s.sealed(err, "cannot look at the container "+m.Name)
	}
	_, err = s.client.VolumeInspect(ctx, m.Name, client.VolumeInspectOptions{})
	switch {
	case cerrdefs.IsNotFound(err) && !fresh:
		return driver.Joined(driver.ErrMachineLost, errors.New("its container and its volume were removed"))
	case cerrdefs.IsNotFound(err):
		_, err = s.client.VolumeCreate(ctx, client.VolumeCreateOptions{Name: m.Name, Labels: labels(m)})
	}
	if err != nil {
		return s.sealed(err, "cannot make the volume "+m.Name)
	}
	security, err := s.security()
	if err != nil {
		return err
	}
	err = s.createOn(ctx, security, s.mounts(meeting))
	if meeting && s.lacksMeeting(err) {
		err = s.createOn(ctx, security, s.mounts(false))
	}
	if cerrdefs.IsConflict(err) { // a process of another host was faster
		return nil
	}
	if cerrdefs.IsNotFound(err) {
		return fault.Wrap("", driver.Joined(driver.ErrUnreachable, err), "cannot make a container: the image %s is gone", m.Shown).
			WithHint("%s pull %s", s.order.Kind, m.Shown)
	}
	if err != nil {
		return s.sealed(err, "cannot make the container "+m.Name)
	}
	return nil
}

// createOn makes the container with these mounts.
func (s *session) createOn(ctx context.Context, security []string, mounts []mount.Mount) error {
	m := s.order.Machine
	_, err := s.client.ContainerCreate(ctx, client.ContainerCreateOptions{
		Name: m.Name,
		Config: &api.Config{
			Image: m.Image, User: user, WorkingDir: state, Hostname: "litterbox", Labels: labels(m),
			Entrypoint: []string{outpostPath}, Cmd: []string{outpost.HoldVerb}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
			Healthcheck: &api.HealthConfig{Test: []string{"NONE"}}, StopSignal: "SIGTERM",
		},
		HostConfig: &api.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, ReadonlyRootfs: true, SecurityOpt: security,
			// Covered parts of /proc cannot be mounted again in a place (mount_too_revealing in the kernel's fs/namespace.c).
			MaskedPaths: []string{}, ReadonlyPaths: []string{},
			Runtime: m.Runtime,
			IpcMode: "private", Tmpfs: map[string]string{"/tmp": "nosuid,nodev,mode=1777"},
			Mounts:        mounts,
			RestartPolicy: api.RestartPolicy{Name: api.RestartPolicyDisabled},
			LogConfig:     s.logs(),
		},
	})
	return err
}

// logs bounds how much the engine keeps of the container's output, of which
// there is next to none.
func (s *session) logs() api.LogConfig {
	if s.order.Kind == container.Podman {
		return api.LogConfig{}
	}
	return api.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "1m", "max-file": "1"}}
}

func labels(m container.Record) map[string]string {
	return map[string]string{container.LabelState: m.State, container.LabelImage: m.Image, container.LabelShown: m.Shown}
}

// list returns the machines of a state directory, by their labels.
func (s *session) list(ctx context.Context) ([]container.Kept, error) {
	filter := client.Filters{}.Add("label", container.LabelState+"="+s.order.State)
	volumes, err := s.client.VolumeList(ctx, client.VolumeListOptions{Filters: filter})
	if err != nil {
		return nil, s.sealed(err, "cannot list volumes")
	}
	containers, err := s.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		return nil, s.sealed(err, "cannot list containers")
	}
	var all []container.Kept
	at := func(name string, labels map[string]string) *container.Kept {
		i := slices.IndexFunc(all, func(one container.Kept) bool { return one.Name == name })
		if i < 0 {
			i = len(all)
			all = append(all, container.Kept{Bytes: -1, Record: container.Record{
				Version: 1, Address: s.order.Address, Name: name, State: labels[container.LabelState],
				Image: labels[container.LabelImage], Shown: labels[container.LabelShown],
			}})
		}
		return &all[i]
	}
	for _, v := range volumes.Items {
		at(v.Name, v.Labels)
	}
	for _, c := range containers.Items {
		if len(c.Names) == 0 {
			continue
		}
		one := at(trimSlash(c.Names[0]), c.Labels)
		one.Container, one.Running = true, c.State == api.StateRunning
	}
	if len(all) == 0 {
		return nil, nil // measuring takes an engine a long time
	}
	// Only this tells how large volumes are. Without it everything else is still
	// reported.
	usage, err := s.client.DiskUsage(ctx, client.DiskUsageOptions{Volumes: true, Verbose: true})
	if err != nil && ctx.Err() != nil {
		return nil, s.sealed(err, "cannot measure volumes")
	}
	for _, v := range usage.Volumes.Items {
		if i := slices.IndexFunc(all, func(one container.Kept) bool { return one.Name == v.Name }); i >= 0 && v.UsageData != nil {
			all[i].Bytes = v.UsageData.Size
		}
	}
	return all, nil
}

func trimSlash(name string) string {
	if len(name) > 0 && name[0] == '/' {
		return name[1:]
	}
	return name
}

// remove removes a machine that no sandbox and no golden is in: the objects that have its name
// and our label.
func (s *session) remove(ctx context.Context) error {
	name := s.order.Machine.Name
	held, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	// A sandbox that begins records its machine before it waits for the lock.
	inside, goldens, err := container.Inside(s.order.Machine.State, name)
	if err != nil {
		return err
	}
	if len(inside)+len(goldens) > 0 {
		return fault.New(fault.Conflict, "cannot remove the container %s: %d sandboxes and %d goldens are in it", name, len(inside), len(goldens))
	}
	found, err := s.client.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	if err == nil {
		if err := s.ours(found.Container); err != nil {
			return err
		}
		_, err = s.client.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true})
	}
	if err != nil && !cerrdefs.IsNotFound(err) {
		return s.sealed(err, "cannot remove the container "+name)
	}
	volume, err := s.client.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	if err == nil && volume.Volume.Labels[container.LabelState] != s.order.Machine.State {
		return fault.New(fault.Conflict, "cannot remove the volume %s: it was not made for %s", name, s.order.Machine.State)
	}
	if err == nil {
		_, err = s.client.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	}
	if err != nil && !cerrdefs.IsNotFound(err) {
		return s.sealed(err, "cannot remove the volume "+name)
	}
	if dir := s.order.Machine.Meeting(); dir != "" {
		if err := os.RemoveAll(dir); err != nil {
			return driver.Seal(err, "cannot remove the directory of a container's sockets")
		}
	}
	return nil
}

// stop ends the container. Its volume stays.
func (s *session) stop(ctx context.Context) error {
	_, err := s.client.ContainerStop(ctx, s.order.Machine.Name, client.ContainerStopOptions{})
	if err != nil && !cerrdefs.IsNotFound(err) {
		return s.sealed(err, "cannot stop the container "+s.order.Machine.Name)
	}
	return nil
}
