package moby

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/container"
)

// Where a container may be on this kernel, it has the directory of sockets at
// which this machine awaits it (container.Record). The container only connects
// there, for which it need not write: the mount is read-only.

// clearMeeting makes the directory for a container that does not run, and removes
// sockets that killed processes have left in it.
func (s *session) clearMeeting() error {
	dir := s.order.Machine.Meeting()
	if dir == "" {
		return nil
	}
	err := os.Mkdir(dir, 0o711)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		err = os.Chmod(dir, 0o711) // the container's user is another one; no other user gets as far as this
	}
	entries, read := os.ReadDir(dir)
	err = errors.Join(err, read)
	for _, entry := range entries {
		err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
	}
	if err != nil {
		return driver.Seal(err, "cannot make the directory of a container's sockets")
	}
	return nil
}

// mounts are those of a container.
func (s *session) mounts(meeting bool) []mount.Mount {
	m := s.order.Machine
	all := []mount.Mount{{Type: mount.TypeVolume, Source: m.Name, Target: home}}
	if dir := m.Meeting(); dir != "" && meeting {
		all = append(all, mount.Mount{Type: mount.TypeBind, Source: dir, Target: container.MeetingPath, ReadOnly: true})
	}
	return all
}

// lacksMeeting reports whether an engine refuses the directory: one in a virtual
// machine need not have it. Its guests use streams.
func (s *session) lacksMeeting(err error) bool {
	dir := s.order.Machine.Meeting()
	return err != nil && dir != "" && (strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), container.MeetingPath))
}

// start starts the container, without the directory if the engine only now finds
// that it cannot mount it.
func (s *session) start(ctx context.Context) error {
	name := s.order.Machine.Name
	_, err := s.client.ContainerStart(ctx, name, client.ContainerStartOptions{})
	if s.lacksMeeting(err) {
		if _, err := s.client.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true}); err != nil && !cerrdefs.IsNotFound(err) {
			return s.sealed(err, "cannot remove the container "+name)
		}
		if err := s.create(ctx, false, false); err != nil {
			return err
		}
		if err := s.bring(ctx); err != nil {
			return err
		}
		_, err = s.client.ContainerStart(ctx, name, client.ContainerStartOptions{})
	}
	if err != nil {
		return s.sealed(err, "cannot start the container "+name)
	}
	return nil
}
