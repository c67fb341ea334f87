package stage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// shiftedLayers gives the workspace's read-only layers as mounts in which the
// cache's owner appears as the sandbox's shifted user. Only lower layers are
// idmapped: an idmapped upper makes the overlay silently read-only.
//
// It needs real root and kernel 5.19. The mounts stay below the new root's
// parent, in our private mount namespace; the overlay holds clones of them.
func (a assembly) shiftedLayers() ([]string, error) {
	users, release, err := idNamespace(a.config.User.UID, a.config.Shift)
	if err != nil {
		return nil, fmt.Errorf("cannot make an id mapping: %w", err)
	}
	defer release()
	place := filepath.Join(a.config.StateDir, "lower")
	if err := os.MkdirAll(place, 0o700); err != nil {
		return nil, err
	}
	if err := unix.Mount("litterbox", place, "tmpfs", 0, "mode=700,size=64k"); err != nil {
		return nil, err
	}
	var mounted []string
	for i, layer := range a.config.Workspace.Layers {
		at := filepath.Join(place, strconv.Itoa(i))
		if err := os.Mkdir(at, 0o700); err != nil {
			return nil, err
		}
		tree, err := unix.OpenTree(unix.AT_FDCWD, layer, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return nil, err
		}
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY, Userns_fd: uint64(users.Fd())}
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr)
		if err == nil {
			err = moveMount(tree, at)
		}
		if closeErr := unix.Close(tree); err == nil {
			err = closeErr
		}
		if err != nil {
			return nil, fmt.Errorf("cannot map the ids of %q (kernel 5.19 and a file system that allows it are needed): %w", layer, err)
		}
		mounted = append(mounted, at)
	}
	return mounted, nil
}

// idNamespace makes a user namespace that maps the owner of cached files, id
// inner on disk, to the shifted id. A child holds it until release.
func idNamespace(inner, shifted int) (namespace *os.File, release func(), err error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer reader.Close()
	mapping := []syscall.SysProcIDMap{{ContainerID: inner, HostID: shifted, Size: 1}}
	process, err := os.StartProcess("/proc/self/exe", []string{"litterbox-guest", VerbWait}, &os.ProcAttr{
		Files: []*os.File{reader},
		Env:   []string{},
		Sys:   &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: mapping, GidMappings: mapping},
	})
	if err != nil {
		writer.Close()
		return nil, nil, err
	}
	release = func() {
		writer.Close()
		_, _ = process.Wait() // it only held the namespace
	}
	namespace, err = os.Open(fmt.Sprintf("/proc/%d/ns/user", process.Pid))
	if err != nil {
		release()
		return nil, nil, err
	}
	end := release
	return namespace, func() { namespace.Close(); end() }, nil
}
