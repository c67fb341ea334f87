package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// installs reports whether a package manager will run.
func (c Config) installs() bool { return c.System != nil && c.System.Install }

// foundation is the layer above the host's userland that packages need; "" is
// none.
func (c Config) foundation() string {
	if c.System == nil {
		return ""
	}
	return c.System.Foundation
}

// systemParts are the top-level directories that packages are installed in.
func (c Config) systemParts() ([]string, error) {
	if c.foundation() == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(c.foundation())
	var dirs []string
	for _, entry := range entries {
		if entry.IsDir() {
			dirs = append(dirs, "/"+entry.Name())
		}
	}
	return dirs, err
}

// packages mounts the directories with installed packages, each an overlay:
// what was installed, the foundation, and, below it, the host's own directory.
// Files of /etc and /var are copies in the foundation: the host's other files
// there are not for a sandbox.
//
// Writes belong to the place that installs. In every other place they go to
// memory, where mount points are made, until sealPackages.
func (a assembly) packages() error {
	for _, dir := range a.installed {
		name := strings.TrimPrefix(dir, "/")
		layers, err := a.frozenLayers(a.config.Frozen.System(a.config.foundation(), name), "installed-"+name)
		if err != nil {
			return err
		}
		foundation, err := a.frozenLayers([]string{filepath.Join(a.config.foundation(), name)}, "foundation-"+name)
		if err != nil {
			return err
		}
		layers = append(layers, foundation...)
		info, err := os.Lstat(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && info.IsDir() && name != "etc" && name != "var" {
			layers = append(layers, dir)
		}
		if name == "etc" {
			ours, err := a.ourEtc()
			if err != nil {
				return err
			}
			layers = append([]string{ours}, layers...)
		}
		options, err := a.written(name)
		if err != nil {
			return err
		}
		err = a.onTarget(dir, true, func(at string) error {
			return overlay(at, unix.MS_NOSUID|unix.MS_NODEV, layers, options)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// written returns the options of an overlay for writes to it.
func (a assembly) written(name string) (string, error) {
	if a.config.installs() {
		return a.installedUpper(name), nil
	}
	upper, work := filepath.Join(a.bench, "upper-"+name), filepath.Join(a.bench, "work-"+name)
	uid, gid := a.config.owner()
	err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755), os.Lchown(upper, uid, gid))
	return fmt.Sprintf("upperdir=%s,workdir=%s", escapeOption(upper), escapeOption(work)), err
}

// installedUpper returns the options for a package manager's writes.
func (a assembly) installedUpper(name string) string {
	dir := filepath.Join("caches", frozen.SystemPart(a.config.foundation(), name))
	return a.upper(filepath.Join(dir, "upper"), filepath.Join(dir, "work"))
}

// sealPackages makes the mounts read-only, once all mount points are made.
func (a assembly) sealPackages() error {
	if a.config.installs() {
		return nil
	}
	for _, dir := range a.installed {
		err := unix.Mount("", filepath.Join(a.config.Root, dir), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
		if err != nil {
			return err
		}
	}
	return nil
}

// ourEtc makes the layer of each sandbox's own files. Users that packages have
// made stay.
func (a assembly) ourEtc() (string, error) {
	layer := filepath.Join(a.bench, "etc")
	if err := os.Mkdir(layer, 0o755); err != nil {
		return "", err
	}
	for name, content := range a.config.Etc {
		data := []byte(content)
		if name == "passwd" || name == "group" {
			data = mergeUsers(data, a.installedFile(filepath.Join("etc", name)), a.config.User.Name)
		}
		if err := unforked(func() error { return os.WriteFile(filepath.Join(layer, name), data, 0o644) }); err != nil {
			return "", err
		}
	}
	return layer, nil
}

// installedFile is the topmost version of a file that packages may have changed.
func (a assembly) installedFile(name string) []byte {
	dir, below := filepath.Dir(name), filepath.Base(name)
	for _, layer := range append(a.config.Frozen.System(a.config.foundation(), dir), filepath.Join(a.config.foundation(), dir)) {
		in := a
		in.config.Root = layer
		if content := in.small("/" + below); content != nil {
			return content
		}
	}
	return nil
}
