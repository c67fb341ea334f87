package stage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// plainEtc is /etc without an overlay: every entry of the host's by itself, and
// copies of ours in place of those that must differ.
func (a assembly) plainEtc() error {
	err := a.onTarget("/etc", true, func(at string) error {
		return unix.Mount("litterbox", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=4m,nr_inodes=4096")
	})
	if err != nil {
		return err
	}
	inside := filepath.Join(a.config.Root, "etc")
	for name, content := range a.config.Etc {
		err := unforked(func() error { return os.WriteFile(filepath.Join(inside, name), []byte(content), 0o644) })
		if err != nil {
			return err
		}
	}
	host, err := os.ReadDir("/etc")
	if err != nil {
		return err
	}
	for _, entry := range host {
		if _, ok := a.config.Etc[entry.Name()]; ok {
			continue
		}
		if err := a.etcEntry(entry); err != nil {
			return err
		}
	}
	// Only this mount: those bound below it are read-only by themselves.
	return unix.Mount("", inside, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// etcEntry shows one entry of the host's. It may be gone by now: useradd(8) and
// others make files there for a moment.
func (a assembly) etcEntry(entry fs.DirEntry) error {
	path := filepath.Join("/etc", entry.Name())
	var err error
	switch { // a socket or pipe has nothing to read
	case entry.Type()&fs.ModeSymlink != 0:
		var link string
		if link, err = os.Readlink(path); err == nil {
			err = os.Symlink(link, filepath.Join(a.config.Root, path))
		}
	case entry.IsDir(), entry.Type().IsRegular():
		err = a.readOnly(path, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
