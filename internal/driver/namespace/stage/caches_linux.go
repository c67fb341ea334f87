package stage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// caches mounts the host's package caches: each an overlay of the host's
// directory and one of the sandbox's, or, where that is not possible, the
// host's directory read-only. One that cannot be shown at all is left out: a
// build may be slower, but the sandbox still starts.
func (a assembly) caches() error {
	for _, cache := range a.config.Caches {
		mark := filepath.Join(a.cacheDir(cache), driver.CacheReadOnly)
		err := a.cacheOverlay(cache)
		if err == nil {
			if err = os.Remove(mark); err == nil || errors.Is(err, os.ErrNotExist) {
				continue
			}
			return err
		}
		why := "read-only: " + err.Error()
		if err := a.cacheReadOnly(cache); err != nil {
			why = "not there: " + err.Error()
		}
		if err := os.WriteFile(mark, []byte(why+"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (a assembly) cacheDir(cache driver.Cache) string {
	return filepath.Join(a.config.StateDir, "caches", cache.Name)
}

func (a assembly) cacheOverlay(cache driver.Cache) error {
	lower := []string{cache.Source}
	if a.users != nil {
		users, err := a.owners.of(cache.Source)
		if err != nil {
			return err
		}
		if lower, err = a.shifted(lower, users, "cache-"+cache.Name); err != nil {
			return err
		}
	}
	dir := a.cacheDir(cache)
	if len(cache.Hidden) > 0 {
		lower = append([]string{filepath.Join(dir, "mask")}, lower...)
	}
	written, err := a.frozenLayers(a.config.Frozen.Caches[cache.Name], "written-"+cache.Name)
	if err != nil {
		return err
	}
	lower = append(written, lower...)
	options := fmt.Sprintf("upperdir=%s,workdir=%s", escapeOption(filepath.Join(dir, "upper")), escapeOption(filepath.Join(dir, "work")))
	return a.onTarget(cache.Target, true, func(at string) error {
		return overlay(at, unix.MS_NOSUID|unix.MS_NODEV, lower, options)
	})
}

func (a assembly) cacheReadOnly(cache driver.Cache) error {
	if err := a.readOnly(cache.Source, cache.Target); err != nil {
		return err
	}
	for _, hidden := range cache.Hidden {
		if _, err := os.Lstat(filepath.Join(cache.Source, hidden)); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := a.tmpfs(filepath.Join(cache.Target, hidden), "mode=755,size=0", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV); err != nil {
			return errors.Join(err, a.unmount(cache.Target))
		}
	}
	return nil
}

func (a assembly) unmount(name string) error {
	uid, gid := a.config.owner()
	file, err := target(a.config.Root, name, true, uid, gid)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.Unmount(fdPath(file), unix.MNT_DETACH)
}

// owners are user namespaces in which an id of the host is the sandbox's
// shifted one, for files that are neither ours nor the sandbox's: root's own
// package caches. Each needs a process for a moment, so they are made beside
// the sandbox's first one.
type owners struct {
	made map[[2]uint32]func() (*os.File, error)
}

// ownersOf starts making the namespaces that the caches will need.
func ownersOf(config Config) *owners {
	o := &owners{made: map[[2]uint32]func() (*os.File, error){}}
	var sources []string
	for _, cache := range config.Caches {
		sources = append(sources, cache.Source)
		sources = append(sources, config.Frozen.Caches[cache.Name]...)
	}
	sources = append(sources, liveSources(config.Workspace)...)
	sources = append(sources, sharedSources(config.Mounts)...)
	written := len(sources)
	sources = slices.Concat(sources, config.Frozen.Upper, config.Frozen.Home, config.Frozen.Below)
	for name, layers := range config.Frozen.Caches {
		if frozen.IsSystem(name) {
			sources = append(sources, layers...)
		}
	}
	if dir := config.foundation(); dir != "" {
		sources = append(sources, dir)
	}
	if base := config.Base; config.installs() && base != nil {
		if base.Owned {
			o.begin([2]uint32{uint32(base.UID), uint32(base.GID)}, config.Shift)
		} else {
			sources = append(sources, base.Layers...)
		}
	}
	for n, source := range sources {
		var st unix.Stat_t
		if unix.Stat(source, &st) != nil {
			continue // of will report it
		}
		key := [2]uint32{st.Uid, st.Gid}
		if o.made[key] != nil || n >= written && st.Uid == uint32(config.Shift) {
			continue
		}
		o.begin(key, config.Shift)
	}
	return o
}

// begin starts making the namespace of an owner.
func (o *owners) begin(key [2]uint32, shift int) {
	future := sync.OnceValues(func() (*os.File, error) { return IDNamespace(int(key[0]), int(key[1]), shift) })
	o.made[key] = future
	go func() { _, _ = future() }() // its users ask again
}

// of returns the namespace for the owner of a directory.
func (o *owners) of(dir string) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return nil, err
	}
	return o.by(int(st.Uid), int(st.Gid))
}

// by returns the namespace for an owner.
func (o *owners) by(uid, gid int) (*os.File, error) {
	make := o.made[[2]uint32{uint32(uid), uint32(gid)}]
	if make == nil {
		return nil, errors.New("its owner has just changed")
	}
	return make()
}

func (o *owners) close() {
	for _, future := range o.made {
		if f, err := future(); err == nil {
			f.Close()
		}
	}
}

// IDNamespace makes a user namespace that maps the ids of an owner to the shifted
// one. A child holds it until it is open.
func IDNamespace(uid, gid, shifted int) (*os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	child, err := os.StartProcess("/proc/self/exe", []string{"litterbox-guest", VerbHold}, &os.ProcAttr{
		Files: []*os.File{reader}, Env: []string{},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: shifted, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: shifted, Size: 1}},
		},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make an id mapping: %w", err), writer.Close())
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", child.Pid))
	err = errors.Join(err, writer.Close())
	_, waitErr := child.Wait() // it only held the namespace
	if err = errors.Join(err, waitErr); err != nil {
		return nil, err
	}
	return namespace, nil
}
