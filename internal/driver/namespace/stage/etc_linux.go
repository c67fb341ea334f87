package stage

import (
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

func (a assembly) etcEntry(entry fs.DirEntry) error {
	path := filepath.Join("/etc", entry.Name())
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(link, filepath.Join(a.config.Root, path))
	case entry.IsDir(), entry.Type().IsRegular():
		return a.readOnly(path, path)
	}
	return nil // a socket or pipe has nothing to read
}
