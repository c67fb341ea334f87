package main

import (
	"errors"
	"os"
	"path/filepath"
)

// inMemory measures a part with its directories on a tmpfs. On a disk, work that
// makes many files may take several times as long as a moment before: ext4 passes over
// every inode that was deleted in the last minutes (recently_deleted in
// fs/ext4/ialloc.c), and where those lie is chance. Only root may mount one; for
// others the part is measured on the disk, and the page says so.
func inMemory(do func(*bench) error) func(*bench) error {
	return func(b *bench) error {
		dir := filepath.Join(b.dir, "memory")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := b.command(b.dir, "mount", "-t", "tmpfs", "-o", "nosuid,nodev,size=75%,mode=700", "bench", dir); err != nil {
			b.report.missing("new files on a tmpfs, so they were made on the disk: %s", b.readable(err))
			return errors.Join(os.Remove(dir), do(b))
		}
		there := *b
		there.dir = dir
		there.env = append(b.env[:len(b.env):len(b.env)], surroundings(dir)...)
		err := errors.Join(do(&there), there.deleteAll())
		// Lazily: a keeper that is on its way out may still hold a directory.
		return errors.Join(err, b.command(b.dir, "umount", "--lazy", dir), os.Remove(dir))
	}
}

// surroundings are the variables that keep a run's files in dir.
func surroundings(dir string) []string {
	return []string{"HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}
}
