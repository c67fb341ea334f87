package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// assembly builds the root file system at config.Root, in a mount namespace
// that no other process sees.
type assembly struct {
	config Config
	bench  string   // where layers are made that exist in memory only
	users  *os.File // the user namespace of the shifted ids; nil if ids are not shifted
	frozen []string // where the frozen layers of the workspace are, once it is mounted
	owners *owners  // further ones, for files that belong to others on disk; nil likewise

	installed []string // where directories with packages are mounted
}

// action is one thing to do, worded for "cannot …".
type action struct {
	what string
	do   func() error
}

func perform(actions []action) error {
	for _, action := range actions {
		if err := action.do(); err != nil {
			return fmt.Errorf("cannot %s: %w", action.what, err)
		}
	}
	return nil
}

func newAssembly(config Config) assembly {
	return assembly{config: config, bench: filepath.Join(config.Root, "mnt")}
}

// found mounts the empty root. Processes started afterwards in this mount
// namespace see what fill adds.
func (a assembly) found() error {
	// 0022 inside and for every mount point; the caller's umask does not concern
	// the sandbox.
	unix.Umask(0o022)
	return perform([]action{
		// First of all: no later step may propagate to the host.
		{"make mounts private", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"mount the root", a.root},
	})
}

func (a *assembly) fill() error {
	if err := a.openBench(); err != nil {
		return fmt.Errorf("cannot mount a workbench: %w", err)
	}
	if a.config.Base != nil {
		if err := a.base(); err != nil {
			return fmt.Errorf("cannot mount the base image: %w", err)
		}
		a.config.Root = a.config.top()
	}
	var err error
	if a.installed, err = a.config.systemParts(); err != nil {
		return fmt.Errorf("cannot list the directories with packages: %w", err)
	}
	return perform([]action{
		{"mount directories with packages", a.packages},
		{"mount system directories", a.system},
		{"mount /etc", a.etc},
		{"mount /dev", a.dev},
		{"mount scratch directories", a.scratch},
		// HOME before what is in it, and the workspace last of all: either can be
		// below the other directories, never above HOME.
		{"mount the home directory", a.home},
		{"mount host directories", a.mounts},
		{"mount package caches", a.caches},
		{"mount the workspace", a.workspace},
		{"show git what changed", a.monitor},
		{"make installed packages read-only", a.sealPackages},
		{"clear the workbench away", func() error { return unix.Unmount(a.bench, unix.MNT_DETACH) }},
		// Mount points are made; from here on the root itself cannot change.
		{"make the root read-only", func() error {
			if a.config.installs() && a.config.Base != nil {
				return nil
			}
			return unix.Mount("", a.config.Root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
		}},
	})
}

func (a assembly) root() error {
	if a.config.Base != nil {
		return a.foundBase()
	}
	if err := unix.Mount("litterbox", a.config.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4m,nr_inodes=4096"); err != nil {
		return err
	}
	for _, dir := range []string{"proc", "sys", "var/lib", "var/cache", "var/log", "mnt", "media", "srv"} {
		if err := os.MkdirAll(filepath.Join(a.config.Root, dir), 0o755); err != nil {
			return err
		}
	}
	if a.config.foundation() != "" {
		return nil // which has a /var of its own
	}
	return os.Symlink("/run", filepath.Join(a.config.Root, "var/run"))
}

func (a assembly) system() error {
	dirs := systemDirs
	if a.config.Base != nil {
		dirs = nil // the image brings its own
	}
	for _, dir := range dirs {
		if slices.Contains(a.installed, dir) {
			continue
		}
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			link, err := os.Readlink(dir)
			if err == nil {
				err = os.Symlink(link, filepath.Join(a.config.Root, dir))
			}
			if err != nil {
				return err
			}
			continue
		}
		if !info.IsDir() {
			continue
		}
		if err := a.readOnly(dir, dir); err != nil {
			return err
		}
	}
	for _, dir := range sysfsParts {
		// A convenience for programs that count processors; a kernel without
		// it, or a container that hides it, loses nothing else.
		if _, err := os.Stat(dir); err == nil {
			if err := a.readOnly(dir, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// readOnly binds a host directory or file and everything mounted below it,
// read-only and without set-user-id or devices. The read-only flag is set on
// the host's side of the wall: the sandbox never holds CAP_SYS_ADMIN over
// this mount (compare CVE-2026-46695).
func (a assembly) readOnly(source, name string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	return a.onTarget(name, info.IsDir(), func(at string) error {
		tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("cannot clone the mount of %q: %w", source, err)
		}
		defer unix.Close(tree)
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
			return fmt.Errorf("cannot make %q read-only: %w", source, err)
		}
		return moveMount(tree, at)
	})
}

// writable binds a directory of the sandbox's own state.
func (a assembly) writable(source, name string) error {
	return a.onTarget(name, true, func(at string) error {
		tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
		if err != nil {
			return err
		}
		defer unix.Close(tree)
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return err
		}
		return moveMount(tree, at)
	})
}

func moveMount(tree int, at string) error {
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
}

// openBench makes the workbench. It is gone before the sandbox can see it: an
// overlay holds clones of its layers' mounts.
func (a assembly) openBench() error {
	return unix.Mount("litterbox", a.bench, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=4m,nr_inodes=1024")
}

// etc is the host's /etc below a layer of ours that holds what must differ:
// resolv.conf, passwd, group, hosts, hostname. No one can write to an overlay
// without an upper directory.
func (a assembly) etc() error {
	if a.config.Base != nil {
		return a.baseEtc()
	}
	if slices.Contains(a.installed, "/etc") {
		return nil
	}
	if len(a.config.Workspace.Layers) == 0 && a.config.Workspace.Live == nil {
		return a.plainEtc()
	}
	layer := filepath.Join(a.bench, "etc")
	if err := os.Mkdir(layer, 0o755); err != nil {
		return err
	}
	for name, content := range a.config.Etc {
		if err := os.WriteFile(filepath.Join(layer, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	err := a.onTarget("/etc", true, func(at string) error {
		return overlay(at, unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, []string{layer, "/etc"}, "")
	})
	if errors.Is(err, unix.EINVAL) {
		// Containers mount files below /etc (resolv.conf, hosts). In a user namespace
		// a directory with such mounts cannot become a layer, as that would uncover
		// what is below them.
		return a.plainEtc()
	}
	return err
}

func (a assembly) dev() error {
	if err := a.tmpfs("/dev", "mode=755,size=64k,nr_inodes=64", unix.MS_NOSUID|unix.MS_NOEXEC); err != nil {
		return err
	}
	dev := filepath.Join(a.config.Root, "dev")
	for _, name := range devices {
		err := a.onTarget("/dev/"+name, false, func(at string) error {
			return unix.Mount("/dev/"+name, at, "", unix.MS_BIND, "")
		})
		if err != nil {
			return err
		}
	}
	for name, link := range deviceLinks {
		if err := os.Symlink(link, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dev, "pts"), 0o755); err != nil {
		return err
	}
	return a.tmpfs("/dev/shm", "mode=1777"+a.config.Limits.shared(), unix.MS_NOSUID|unix.MS_NODEV)
}

func (a assembly) tmpfs(name, options string, flags uintptr) error {
	uid, gid := a.config.owner()
	return a.onTarget(name, true, func(at string) error {
		return unix.Mount("litterbox", at, "tmpfs", flags, fmt.Sprintf("%s,uid=%d,gid=%d", options, uid, gid))
	})
}

func (a assembly) scratch() error {
	if err := a.tmpfs("/run", "mode=755,size=64m,nr_inodes=16384", unix.MS_NOSUID|unix.MS_NODEV); err != nil {
		return err
	}
	if err := a.writable(filepath.Join(a.config.StateDir, "tmp"), "/tmp"); err != nil {
		return err
	}
	return a.writable(filepath.Join(a.config.StateDir, "var-tmp"), "/var/tmp")
}

// home is the sandbox's own directory, above its frozen parts.
func (a assembly) home() error {
	if len(a.config.Frozen.Home) > 0 {
		layers, err := a.frozenLayers(a.config.Frozen.Home, "home")
		if err != nil {
			return err
		}
		return a.onTarget(a.config.Home, true, func(at string) error {
			return overlay(at, unix.MS_NOSUID|unix.MS_NODEV, layers, a.upper("home", HomeWork))
		})
	}
	return a.writable(filepath.Join(a.config.StateDir, "home"), a.config.Home)
}

func (a assembly) mounts() error {
	for _, mount := range a.config.Mounts {
		bind := func() error { return a.readOnly(mount.Source, mount.Target) }
		if mount.Writable {
			bind = func() error { return a.shared(mount) }
		}
		if err := bind(); err != nil {
			return err
		}
	}
	return nil
}

// workspace is an overlay: the project's files and its git directory as
// read-only layers, and the sandbox's upper directory. Or it is that directory,
// if it holds everything.
func (a *assembly) workspace() error {
	w := a.config.Workspace
	if w.Live != nil {
		return a.live(w.Path, w.Live)
	}
	if len(w.Layers) == 0 {
		return a.writable(w.Upper, w.Path)
	}
	count := len(a.config.Frozen.Upper)
	written, err := a.frozenLayers(w.Layers[:count], "frozen")
	if err != nil {
		return err
	}
	layers, err := a.layersOf(w.Layers[count:], true, "workspace")
	if err != nil {
		return err
	}
	below, err := a.frozenLayers(a.config.Frozen.Below, "below")
	if err != nil {
		return err
	}
	// Files that the base tracks always show above files that a golden has ignored.
	a.frozen, layers = written, slices.Concat(written, layers, below)
	return a.onTarget(w.Path, true, func(at string) error {
		upper := fmt.Sprintf("upperdir=%s,workdir=%s", escapeOption(w.Upper), escapeOption(w.Work))
		return overlay(at, unix.MS_NOSUID|unix.MS_NODEV, layers, upper)
	})
}

// overlay mounts read-only layers, topmost first, and whatever else options
// say. It states everything whose default the kernel's configuration could
// change: redirects and metacopies would make the upper directory unreadable
// for us.
func overlay(at string, flags uintptr, layers []string, options string) error {
	escaped := make([]string, len(layers))
	for i, layer := range layers {
		escaped[i] = escapeOption(layer)
	}
	more := ",redirect_dir=nofollow,metacopy=off,index=off,xino=off"
	if options != "" {
		more += "," + options
	}
	// user.* instead of trusted.* attributes: a user namespace may not write
	// the latter (kernel 5.11), and one format for both ways of running needs only
	// one reader of the upper directory.
	more += ",userxattr"
	data := "lowerdir=" + strings.Join(escaped, ":") + more
	if len(data) >= os.Getpagesize() { // more than mount(2) takes
		short, release, err := shorten(layers)
		if err != nil {
			return err
		}
		defer release()
		data = "lowerdir=" + strings.Join(short, ":") + more
	}
	if len(data) >= os.Getpagesize() {
		return errors.New("the layers' paths are longer than mount(2) takes")
	}
	return unix.Mount("litterbox", at, "overlay", flags, data)
}

// escapeOption escapes the separators of overlay options and layers.
func escapeOption(path string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace(path)
}
