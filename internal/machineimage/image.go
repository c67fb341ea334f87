// Package machineimage makes the images that virtual machines for places start
// from: a kernel, an initial file system whose only program is our outpost, a
// read-only disk with the userland of places, and an empty disk for their
// writes. All of it comes from Debian's packages and this program; the same
// packages and the same program make the same bytes.
//
// It runs the tools of the system (apt-get, dpkg-deb, mmdebstrap, sqfstar, mke2fs,
// qemu-img) and knows nothing about how machines are started. Start reading at
// [Build].
package machineimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The files of an image, beside [Record].
const (
	Kernel = "vmlinuz"
	Initrd = "initrd.gz"
	Root   = "root.squashfs"
	State  = "state.qcow2"
	Record = "image.json"
)

// Image is the record of an image, which is written last: a directory without it
// is not an image.
type Image struct {
	Version  int               `json:"version"`
	System   string            `json:"system"`
	Kernel   string            `json:"kernel"` // the package with its version
	Packages []string          `json:"packages"`
	Files    map[string]string `json:"files"`             // SHA-256 in hexadecimal digits
	Disk     string            `json:"disk,omitempty"`    // of the user's, with the userland (WithDisk)
	Counted  bool              `json:"counted,omitempty"` // each machine that uses it has a link to its record
}

// ID names the content of an image.
func (i Image) ID() string {
	sum := sha256.New()
	for _, name := range []string{Kernel, Initrd, Root, State} {
		_, _ = io.WriteString(sum, i.Files[name]+"\n") // never fails, hash.Hash
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// Open reads the record of the newest image below a directory, and returns where
// its files are. An image never changes: machines use its disks.
func Open(dir string) (image Image, path string, err error) {
	path, err = filepath.EvalSymlinks(filepath.Join(dir, current))
	if err == nil {
		var data []byte
		if data, err = os.ReadFile(filepath.Join(path, Record)); err == nil {
			err = json.Unmarshal(data, &image)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return image, "", fault.New(fault.NotFound, "there is no image for virtual machines in %s", dir).WithHint("litterbox machine build-image")
	}
	if err == nil && (image.Version < oldest || image.Version > version || len(image.Files) != 4) {
		err = errors.New("another version of litterbox made it")
	}
	if err != nil {
		return image, "", fault.Wrap(fault.Unavailable, err, "cannot read the image of virtual machines in %s", dir).WithHint("litterbox machine build-image")
	}
	return image, path, nil
}

// current is the link to the newest image, beside the images.
const current = "current"

// oldest is the first version in which machines may come up from a copied memory, and
// have other random numbers. The present one takes disks of the user's.
const oldest, version = 2, disks

// Order is what an image is made of.
type Order struct {
	Dir      string                        // where images are, each by its id
	Suite    string                        // of Debian
	Mirror   string                        // empty for the tools' default
	Packages []string                      // of the userland, besides the essential ones
	Outpost  func() (io.ReadCloser, error) // the program that runs in machines
	Env      []string                      // of the tools
	Say      func(string)                  // the present step
}

// DefaultSuite is the suite whose kernel is tested with places.
const DefaultSuite = "bookworm"

// DefaultPackages returns the packages that agents need in nearly every project.
func DefaultPackages() []string {
	return []string{"ca-certificates", "curl", "git", "less", "openssh-client", "patch", "procps", "python3-minimal", "ripgrep", "unzip", "xz-utils"}
}

// Build makes an image, which all machines made from then on use. A build that
// fails or is interrupted changes nothing.
func Build(ctx context.Context, order Order) (Image, error) {
	image := Image{Version: version, System: "linux/" + runtime.GOARCH, Packages: order.Packages, Files: map[string]string{}}
	if runtime.GOOS != "linux" {
		return image, fault.New(fault.Unsupported, "cannot build an image of virtual machines on %s: it is made with Debian's tools", runtime.GOOS)
	}
	if err := tools("apt-get", "apt-cache", "dpkg-deb", "mmdebstrap", "sqfstar", "mke2fs", "qemu-img"); err != nil {
		return image, err
	}
	if err := os.MkdirAll(order.Dir, 0o755); err != nil {
		return image, fault.Wrap(fault.Unavailable, err, "cannot make the directory of images")
	}
	work, err := os.MkdirTemp(order.Dir, ".building-*")
	if err != nil {
		return image, fault.Wrap(fault.Unavailable, err, "cannot make the directory of images")
	}
	image, err = build(ctx, order, work, image)
	if err == nil {
		err = publish(order.Dir, work, image.ID())
	}
	return image, errors.Join(err, os.RemoveAll(work))
}

func build(ctx context.Context, order Order, work string, image Image) (Image, error) {
	// QEMU of the system's libvirt reads it as another user.
	if err := os.Chmod(work, 0o755); err != nil {
		return image, err
	}
	order.Say("the kernel")
	modules, err := order.kernel(ctx, work, &image)
	if err != nil {
		return image, err
	}
	order.Say("the initial file system")
	if err := initrd(filepath.Join(work, Initrd), modules, order.Outpost); err != nil {
		return image, fault.Wrap(fault.Unavailable, err, "cannot make the initial file system")
	}
	order.Say("the userland, from " + order.Suite)
	if err := order.userland(ctx, filepath.Join(work, Root)); err != nil {
		return image, err
	}
	order.Say("the disk for what sandboxes write")
	if err := order.stateDisk(ctx, filepath.Join(work, State)); err != nil {
		return image, err
	}
	for _, name := range []string{Kernel, Initrd, Root, State} {
		sum, err := hash(filepath.Join(work, name))
		if err != nil {
			return image, fault.Wrap(fault.Unavailable, err, "cannot read the image")
		}
		image.Files[name] = sum
	}
	if err := os.RemoveAll(filepath.Join(work, "kernel")); err != nil {
		return image, fault.Wrap(fault.Unavailable, err, "cannot clear away after the kernel's package")
	}
	data, err := json.MarshalIndent(image, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(work, Record), append(data, '\n'), 0o644)
	}
	if err != nil {
		return image, fault.Wrap(fault.Unavailable, err, "cannot record the image")
	}
	return image, nil
}

// publish gives the image its name, and points the link to it.
func publish(dir, work, id string) error {
	err := os.Rename(work, filepath.Join(dir, id))
	if err != nil && !errors.Is(err, fs.ErrExist) { // then it already exists
		return fault.Wrap(fault.Unavailable, err, "cannot put the image in its place")
	}
	link := filepath.Join(dir, "."+current)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "cannot put the image in its place")
	}
	if err := errors.Join(os.Symlink(id, link), os.Rename(link, filepath.Join(dir, current))); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot put the image in its place")
	}
	return nil
}

func hash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
