package machineimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// DiskPrefix begins the name of a disk of the user's in an image, in the place of
// [Root]; the format follows: qcow2 or raw.
const DiskPrefix = "root."

// Built is the link, in an image with a disk of the user's, to the image that was built
// with the same kernel.
const Built = "built"

// disks is the first version whose first process finds the root on a disk of the
// user's.
const disks = 3

// WithDisk returns the directory of an image whose userland is that of a disk image of
// the user's: a cloud image, for example. Kernel and first process are those of a built
// image, given by its directory. The disk is copied, because images never change; the
// copy serves until the file changes.
func WithDisk(ctx context.Context, built, file string) (string, error) {
	var image Image
	data, err := os.ReadFile(filepath.Join(built, Record))
	if err == nil {
		err = json.Unmarshal(data, &image)
	}
	if err == nil && image.Version < disks {
		err = errors.New("an earlier version of litterbox made it")
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot use the image in %s with a disk of yours", built).WithHint("litterbox machine build-image")
	}
	was, err := os.Stat(file)
	if err != nil {
		return "", fault.Wrap(fault.NotFound, err, "cannot read vm.image")
	}
	format, err := diskFormat(file)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "cannot use %q as vm.image", file)
	}
	dir := diskDir(built, file, was)
	if _, err := os.Stat(filepath.Join(dir, Record)); err == nil {
		return dir, nil
	}
	work, err := os.MkdirTemp(filepath.Dir(built), ".building-*")
	if err == nil {
		image.Packages, image.Disk, image.Counted = nil, file, true
		delete(image.Files, Root)
		err = compose(ctx, image, built, file, filepath.Join(work, DiskPrefix+format))
		if now, looked := os.Stat(file); err == nil && (looked != nil || identityOf(now) != identityOf(was)) {
			err = errors.New("it was changed while it was copied")
		}
		if err == nil {
			if err = os.Rename(work, dir); errors.Is(err, fs.ErrExist) {
				err = nil // another process was faster
			}
		}
		err = errors.Join(err, os.RemoveAll(work))
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot copy vm.image %q", file)
	}
	return dir, nil
}

// diskDir is where the copy of a disk is, or will be.
func diskDir(built, file string, is fs.FileInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", filepath.Base(built), file, identityOf(is)))
	return filepath.Join(filepath.Dir(built), hex.EncodeToString(sum[:])[:16])
}

// DiskOf returns the disk of the user's that the image in dir is a copy of, "" for other
// images. It is stale if no new machine begins with it, because the disk or the built
// image is another one now, and machines that use it have links to its record.
func DiskOf(built, dir string) (disk string, stale bool) {
	var image Image
	data, err := os.ReadFile(filepath.Join(dir, Record))
	if err != nil || json.Unmarshal(data, &image) != nil || image.Disk == "" {
		return "", false
	}
	is, err := os.Stat(image.Disk)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return image.Disk, false
	}
	return image.Disk, image.Counted && (err != nil || diskDir(built, image.Disk, is) != filepath.Clean(dir))
}

// identityOf changes when the file does.
func identityOf(info fs.FileInfo) string {
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// compose fills the directory of disk with the image.
func compose(ctx context.Context, image Image, built, file, disk string) error {
	work := filepath.Dir(disk)
	if err := os.Chmod(work, 0o755); err != nil { // QEMU of the system's libvirt reads it as another user
		return err
	}
	for _, name := range []string{Kernel, Initrd, State} {
		if err := os.Link(filepath.Join(built, name), filepath.Join(work, name)); err != nil {
			return err
		}
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	defer context.AfterFunc(ctx, func() { in.Close() })() // ends the copying
	out, err := os.OpenFile(disk, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if strings.HasSuffix(disk, rawFormat) {
		err = copySparse(out, in)
	} else {
		_, err = io.Copy(out, in) // by the kernel, and shared where the file system can
	}
	if err = errors.Join(err, out.Close(), os.Chmod(disk, 0o644)); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join("..", filepath.Base(built)), filepath.Join(work, Built)); err != nil {
		return err
	}
	data, err := json.MarshalIndent(image, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, Record), append(data, '\n'), 0o644)
}

// copySparse leaves out what is zero: a raw disk is mostly that.
func copySparse(out *os.File, in io.Reader) error {
	buffer, zeros, at := make([]byte, 64<<10), make([]byte, 64<<10), int64(0)
	for {
		n, err := io.ReadFull(in, buffer)
		if !bytes.Equal(buffer[:n], zeros[:n]) {
			if _, err := out.WriteAt(buffer[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(at)
		}
		if err != nil {
			return err
		}
	}
}

// rawFormat is QEMU's name of the format of a plain disk.
const rawFormat = "raw"

// diskFormat tells the format of a disk image, which QEMU is never left to guess, and
// refuses one that refers to other files: QEMU would read those, too.
func diskFormat(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 72<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	head = head[:n]
	for tool, magic := range map[string]string{"gzip -d": "\x1f\x8b", "xz -d": "\xfd7zXZ\x00", "zstd -d": "\x28\xb5\x2f\xfd", "bzip2 -d": "BZh"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return "", fmt.Errorf("it is compressed: %s makes the disk image of it", tool)
		}
	}
	if n >= 104 && bytes.HasPrefix(head, []byte("QFI\xfb")) {
		return "qcow2", checkQcow2(head)
	}
	if isRawDisk(head) {
		return rawFormat, nil
	}
	return "", errors.New("it is no disk image: those of QEMU (qcow2) and raw ones are taken")
}

// checkQcow2 refuses what is not in the one file. (The format: docs/interop/qcow2.txt of
// QEMU.)
func checkQcow2(head []byte) error {
	be := binary.BigEndian
	version, incompatible := be.Uint32(head[4:]), uint64(0)
	if version >= 3 {
		incompatible = be.Uint64(head[72:])
	}
	const corrupt, external = 1 << 1, 1 << 2
	switch {
	case version < 2 || version > 3:
		return fmt.Errorf("it is of version %d of qcow2", version)
	case be.Uint64(head[8:]) != 0:
		return errors.New("it stands on another file: qemu-img convert -O qcow2 makes one of both")
	case incompatible&external != 0:
		return errors.New("its data is in another file: qemu-img convert -O qcow2 makes one of both")
	case be.Uint32(head[32:]) != 0:
		return errors.New("it is encrypted")
	case incompatible&corrupt != 0:
		return errors.New("QEMU has found errors in it: qemu-img check -r all")
	}
	return nil
}

// isRawDisk recognizes a table of partitions (its boot signature), or a file system
// without one: ext4, xfs, btrfs.
func isRawDisk(head []byte) bool {
	has := func(at int, magic string) bool {
		return len(head) >= at+len(magic) && string(head[at:at+len(magic)]) == magic
	}
	return has(510, "\x55\xaa") || has(0x438, "\x53\xef") || has(0, "XFSB") || has(0x10040, "_BHRfS_M")
}
