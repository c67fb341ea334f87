package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// tempAge is how old a file with a temporary name must be to count as left behind:
// a writer that replaces a record by one is done within moments.
const tempAge = 10 * time.Minute

// tempName is the name of a record while it is written: os.CreateTemp beside the
// record, or a fixed name that one writer at a time uses. Claims of names are
// called after the id.
var (
	tempName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\.(sandbox|origin|lease|agent|services|ports|policy|limits|keys|names|repo|trust|git-[0-9a-f]{16})\.json(-[0-9]+)?$|^stopped\.json\.new$`)
	})
	tempClaim = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\.[a-z0-9][a-z0-9-]*-[0-9a-f]{8}(-released|-mended)?$`)
	})
)

// halfWritten finds records that were never put in place. Files that a sandbox or
// another program names so are not looked at.
func (e *Engine) halfWritten() []Leftover {
	var found []Leftover
	look := func(dir string, name *regexp.Regexp) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return // none, or just removed
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if name.MatchString(entry.Name()) && abandoned(path) {
				found = append(found, Leftover{What: "a record that was never finished", Where: path,
					fix: func(context.Context) error { return removeAbandoned(path) }})
			}
		}
	}
	look(e.Store.Root, tempName())
	for _, dir := range directories(filepath.Join(e.Store.Root, "sandboxes")) {
		look(dir, tempName())
	}
	for _, dir := range directories(filepath.Join(e.Store.Root, "repos")) {
		look(dir, tempName())
		look(filepath.Join(dir, "names"), tempClaim())
	}
	return found
}

func directories(dir string) (paths []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // there are none
	}
	for _, entry := range entries {
		if entry.IsDir() {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths
}

// abandoned reports whether a file is an ordinary file of this user that has not
// been written to for long.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < tempAge {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

func removeAbandoned(path string) error {
	if !abandoned(path) {
		return nil // it is being written to again
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// deadPacks are packs in a repository that a killed git fast-import left.
func (e *Engine) deadPacks(repo *git.Repository) []Leftover {
	var found []Leftover
	for _, path := range repo.DeadPacks(tempAge) {
		found = append(found, Leftover{What: "a pack that a killed git never finished", Where: path,
			fix: func(context.Context) error { return repo.RemoveDeadPack(path, tempAge) }})
	}
	return found
}
