package stage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// foundBase mounts the memory that holds an image's root and our additions.
func (a assembly) foundBase() error {
	err := unix.Mount("litterbox", a.config.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=16m,nr_inodes=8192")
	for _, dir := range []string{baseDir, "upper", "work", filepath.Base(a.bench)} {
		if err == nil {
			err = os.Mkdir(filepath.Join(a.config.Root, dir), 0o755)
		}
	}
	return err
}

// base makes the root of a sandbox that does not have the host's userland: an
// overlay of the image's layers. Our additions (mount points, some files of
// /etc) go to memory above them, and the whole becomes read-only before any
// other process runs.
//
// The image is untrusted: every path in it is resolved within it (inRoot), or
// without following links at all (target).
func (a assembly) base() error {
	base := a.config.Base
	layers, err := a.baseLayers(base)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("upperdir=%s,workdir=%s",
		escapeOption(filepath.Join(a.config.Root, "upper")), escapeOption(filepath.Join(a.config.Root, "work")))
	if a.config.installs() {
		options = a.installedUpper("")
	}
	a.config.Root = a.config.top()
	if err := overlay(a.config.Root, unix.MS_NOSUID|unix.MS_NODEV, layers, options); err != nil {
		return err
	}
	for _, dir := range []string{"/proc", "/sys"} {
		if err := a.onTarget(dir, true, func(string) error { return nil }); err != nil {
			return err
		}
	}
	if dir := base.WorkingDir; filepath.IsAbs(dir) {
		// As container engines do. A link there leads anywhere the image wants.
		f, err := a.inRoot(dir, unix.O_PATH)
		if err == nil {
			return f.Close()
		}
		if errors.Is(err, unix.ENOENT) {
			return a.onTarget(dir, true, func(string) error { return nil })
		}
	}
	return nil
}

// baseLayers returns an image's layers below those with packages. When more are
// installed, all files belong to inner root, who changes them, also those of a
// directory, which are otherwise shown as they are.
func (a assembly) baseLayers(base *driver.Base) ([]string, error) {
	installed, err := a.frozenLayers(a.config.Frozen.System("", ""), "installed")
	if err != nil {
		return nil, err
	}
	if a.config.installs() {
		below, err := a.baseToChange(base)
		return slices.Concat(installed, below), err
	}
	below, err := a.layersOf(base.Layers, base.Owned, "base")
	return slices.Concat(installed, below), err
}

// baseToChange returns an image's layers as a package manager needs them. The
// owner of all in them is not always the owner of their top.
func (a assembly) baseToChange(base *driver.Base) ([]string, error) {
	if a.users == nil || !base.Owned {
		return a.frozenLayers(base.Layers, "base")
	}
	users, err := a.owners.by(base.UID, base.GID)
	if err != nil {
		return nil, err
	}
	return a.shifted(base.Layers, users, "base")
}

// layersOf returns read-only layers as overlay can use them: id-mapped if ids
// are shifted and the layers belong to the inner user's id on disk.
func (a assembly) layersOf(layers []string, owned bool, name string) ([]string, error) {
	if a.users == nil || !owned {
		return layers, nil
	}
	return a.shifted(layers, a.users, name)
}

// shorten names each layer by a descriptor: the paths of an image's layers
// together are longer than the page that mount(2) takes.
func shorten(layers []string) (short []string, release func(), err error) {
	var open []*os.File
	release = func() {
		for _, f := range open {
			f.Close()
		}
	}
	for _, layer := range layers {
		fd, err := unix.Open(layer, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			release()
			return nil, nil, fmt.Errorf("cannot open the layer %q: %w", layer, err)
		}
		f := os.NewFile(uintptr(fd), layer)
		open, short = append(open, f), append(short, fdPath(f))
	}
	return short, release, nil
}

// inRoot opens a path as it will resolve once the root is changed. A pipe there
// does not block.
func (a assembly) inRoot(name string, flags int) (*os.File, error) {
	root, err := unix.Open(a.config.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK // openat2(2) refuses the two together
	}
	fd, err := unix.Openat2(root, name, &unix.OpenHow{
		Flags: uint64(flags) | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// baseEtc puts the files that must differ into the image's own /etc.
func (a assembly) baseEtc() error {
	uid, gid := a.config.owner()
	dir, err := target(a.config.Root, "/etc", true, uid, gid)
	if err != nil {
		return err
	}
	defer dir.Close()
	for name, content := range a.config.Etc {
		data := []byte(content)
		switch name {
		case "passwd", "group":
			// The image's own users stay: its programs look for them.
			data = mergeUsers(data, a.small("/etc/"+name), a.config.User.Name)
		}
		if err := a.replaceIn(dir, name, data); err != nil {
			return err
		}
	}
	return a.certificates()
}

// small reads a small regular file of the image; nil when there is none.
func (a assembly) small(name string) []byte {
	const most = 4 << 20
	f, err := a.inRoot(name, unix.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return content
}

// mergeUsers puts our line of the inner user in front of the image's lines,
// without those of the same name or id, and the rest of ours after them if the
// image has no one of that name (passwd(5), group(5): NAME:x:ID:…).
func mergeUsers(ours, theirs []byte, user string) []byte {
	var first, rest []string
	names, ids := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(ours)) {
		if fields := strings.SplitN(line, ":", 4); fields[0] == user && len(fields) == 4 {
			first = append(first, line)
			names[fields[0]], ids[fields[2]] = true, true
		} else {
			rest = append(rest, line)
		}
	}
	var out bytes.Buffer
	for _, line := range first {
		out.WriteString(line)
	}
	for line := range strings.Lines(string(theirs)) {
		fields := strings.SplitN(line, ":", 4)
		if len(fields) < 4 || names[fields[0]] || ids[fields[2]] {
			continue
		}
		names[fields[0]] = true
		out.WriteString(strings.TrimRight(line, "\n") + "\n")
	}
	for _, line := range rest {
		if name, _, _ := strings.Cut(line, ":"); !names[name] {
			out.WriteString(line)
		}
	}
	return out.Bytes()
}

// replaceIn writes a file of a directory in place of any existing one. It
// belongs to the inner user, and stays when packages are installed.
func (a assembly) replaceIn(dir *os.File, name string, content []byte) error {
	at := int(dir.Fd())
	if err := unix.Unlinkat(at, name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("cannot replace %q of the image: %w", name, err)
	}
	return unforked(func() error {
		fd, err := unix.Openat(at, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return fmt.Errorf("cannot write %q: %w", name, err)
		}
		f := os.NewFile(uintptr(fd), name)
		_, err = f.Write(content)
		uid, gid := a.config.owner()
		if given := f.Chown(uid, gid); !errors.Is(given, unix.EPERM) {
			err = errors.Join(err, given)
		}
		return errors.Join(err, f.Close())
	})
}

// bundles is where systems keep the certificates they trust, as one file
// (crypto/x509, root_linux.go).
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// certificates gives an image without certificates the host's: slim images
// leave them out, and then no allowed host's data could be verified.
func (a assembly) certificates() error {
	for _, bundle := range bundles {
		if len(a.small(bundle)) > 0 {
			return nil
		}
	}
	var content []byte
	for _, bundle := range bundles {
		if data, err := os.ReadFile(bundle); err == nil && len(data) > 0 {
			content = data
			break
		}
	}
	if content == nil {
		return nil // the host has none either
	}
	uid, gid := a.config.owner()
	for _, bundle := range []string{bundles[0], bundles[1], bundles[len(bundles)-1]} {
		dir, err := target(a.config.Root, filepath.Dir(bundle), true, uid, gid)
		if err != nil {
			return err
		}
		err = a.replaceIn(dir, filepath.Base(bundle), content)
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
	}
	return nil
}
