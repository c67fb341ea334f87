package machineimage

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/outpost/boot"
)

// wanted returns the modules that places need; their dependencies come along.
func wanted() []string {
	return []string{
		"virtio_pci", "virtio_mmio", "virtio_blk", "virtio_console", "virtio_balloon", "virtio_rng",
		"squashfs", "ext4", "overlay",
		"nf_tables", "nft_chain_nat", "nft_redir", "nft_nat", "nft_ct", "inet_diag", "tcp_diag", "udp_diag",
	}
}

// initrd packs the program and the modules below dir. Those of file systems that only
// disks of the user's have are loaded when such a disk is there.
func initrd(path, dir string, program func() (io.ReadCloser, error)) error {
	lists := map[string][]string{boot.Order: wanted(), boot.OrderOf("xfs"): {"xfs"}, boot.OrderOf("btrfs"): {"btrfs"}}
	outpost, err := program()
	if err != nil {
		return err
	}
	defer outpost.Close()
	init, err := io.ReadAll(outpost)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	packed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := &archive{w: packed}
	for _, name := range []string{"dev", "proc", "sys", "new", strings.TrimPrefix(boot.Modules, "/")} {
		w.add(name, directory, nil)
	}
	w.add("init", executable, init)
	packedAlready := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		order, files, err := modules(dir, lists[name])
		if err != nil {
			return err
		}
		var list bytes.Buffer
		for _, module := range order {
			file := filepath.Base(files[module])
			fmt.Fprintln(&list, file)
			if packedAlready[file] {
				continue
			}
			packedAlready[file] = true
			data, err := os.ReadFile(files[module])
			if err != nil {
				return err
			}
			w.add(strings.TrimPrefix(boot.Modules, "/")+"/"+file, regular, data)
		}
		w.add(strings.TrimPrefix(boot.Modules, "/")+"/"+name, regular, list.Bytes())
	}
	w.add("TRAILER!!!", 0, nil)
	return errors.Join(w.err, packed.Close(), f.Close())
}

// modules finds the modules with these names and their dependencies, in the
// order of loading. Missing ones are parts of the kernel itself.
func modules(dir string, names []string) (order []string, files map[string]string, err error) {
	files = map[string]string{}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".ko") {
			files[moduleName(filepath.Base(path))] = path
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var add func(name string) error
	add = func(name string) error {
		path, is := files[name]
		if !is || slices.Contains(order, name) {
			return nil
		}
		info, err := moduleInfo(path)
		if err != nil {
			return err
		}
		for _, needed := range info["depends"] {
			for _, one := range strings.Split(needed, ",") {
				if err := add(moduleName(one)); err != nil {
					return err
				}
			}
		}
		// Modules that are used if they exist, like a checksum that ext4 asks for by
		// name.
		for _, soft := range info["softdep"] {
			for _, one := range strings.Fields(strings.TrimPrefix(soft, "pre:")) {
				if err := add(moduleName(one)); err != nil {
					return err
				}
			}
		}
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
		return nil
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, nil, err
		}
	}
	return order, files, nil
}

// moduleName is the kernel's name for a module.
func moduleName(text string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimSpace(text), ".ko"), "-", "_")
}

// moduleInfo reads what a module says about itself.
func moduleInfo(path string) (map[string][]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s is not a module of the kernel", path)
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	info := map[string][]string{}
	for _, field := range bytes.Split(data, []byte{0}) {
		if name, value, ok := strings.Cut(string(field), "="); ok && value != "" {
			info[name] = append(info[name], value)
		}
	}
	return info, nil
}

// Modes of files in an archive.
const (
	directory  = 0o040755
	executable = 0o100755
	regular    = 0o100644
)

// archive writes the format that the kernel unpacks ("newc",
// Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	w     io.Writer
	inode int
	err   error
}

func (a *archive) add(name string, mode int, data []byte) {
	a.inode++
	links := 1
	if mode == directory {
		links = 2
	}
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	for _, part := range [][]byte{pad([]byte(head)), pad(data)} {
		if a.err == nil {
			_, a.err = a.w.Write(part)
		}
	}
}

// pad fills up to a multiple of four.
func pad(data []byte) []byte {
	return append(slices.Clip(data), make([]byte, (4-len(data)%4)%4)...)
}
