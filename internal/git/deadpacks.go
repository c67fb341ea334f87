package git

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// DeadPacks lists the packs that a killed git fast-import, which makes every
// commit of ours, has left in the repository. Other writers of packs, a fetch
// or a repack, write the number of objects first; only fast-import does not
// know it before it ends. Packs that a process has open, that are younger than
// age or that belong to another user are left out.
func (r *Repository) DeadPacks(age time.Duration) []string {
	paths, err := filepath.Glob(filepath.Join(GlobEscape(r.CommonDir), "objects", "pack", "tmp_pack_*"))
	if err != nil {
		return nil // no such pattern
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return !unfinishedImport(path, age) })
	if len(paths) == 0 {
		return nil
	}
	open := openFiles()
	return slices.DeleteFunc(paths, func(path string) bool { return open[path] })
}

// RemoveDeadPack removes one of them, unless it is no longer dead.
func (r *Repository) RemoveDeadPack(path string, age time.Duration) error {
	if !slices.Contains(r.DeadPacks(age), path) {
		return nil
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func unfinishedImport(path string, age time.Duration) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < age {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	header := make([]byte, 12) // gitformat-pack(5)
	_, err = io.ReadFull(f, header)
	return err == nil && string(header[:4]) == "PACK" && binary.BigEndian.Uint32(header[8:]) == 0
}

// openFiles returns the files that processes of ours have open.
func openFiles() map[string]bool {
	found := map[string]bool{}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			found[target] = true
		}
	}
	return found
}

// GlobEscape writes a path so that filepath.Glob takes it literally.
func GlobEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
