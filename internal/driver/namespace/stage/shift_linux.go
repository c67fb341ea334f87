package stage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// shifted returns read-only layers as mounts in which their owner on disk
// appears as the sandbox's shifted user. Only lower layers are idmapped: an
// idmapped upper makes the overlay silently read-only. name distinguishes the
// sets of layers.
//
// It needs real root and kernel 5.19. The mounts stay on the workbench, in our
// private mount namespace; the overlay holds clones of them.
func (a assembly) shifted(layers []string, users *os.File, name string) ([]string, error) {
	place := filepath.Join(a.bench, name)
	if err := os.Mkdir(place, 0o700); err != nil {
		return nil, err
	}
	var mounted []string
	for i, layer := range layers {
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
