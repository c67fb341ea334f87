package layer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Entry is one shared layer, or the remains of an interrupted build of one.
type Entry struct {
	Kind    string // "trees", "deltas", "packs", "git": the directory it is in
	Key     string
	Dir     string
	Partial bool      // never finished; no sandbox uses it
	Used    time.Time // when a sandbox last started from it
}

// Serves reports whether a workspace with this layer needs the entry: the
// layer is there, or is a history whose packs are those of the entry.
func (e Entry) Serves(layer string) bool {
	if strings.HasPrefix(layer, e.Dir+"/") {
		return true
	}
	if e.Kind != packs {
		return false
	}
	// Of both, the name begins with the commit and the repository.
	parts := strings.SplitN(e.Key, "-", 3)
	beside := filepath.Join(filepath.Dir(filepath.Dir(e.Dir)), "git")
	return len(parts) == 3 && strings.HasPrefix(layer, filepath.Join(beside, parts[0]+"-"+parts[1])+"-")
}

// Entries lists the cache.
func (c Cache) Entries() ([]Entry, error) {
	cannot := func(err error) error { return fault.Wrap(fault.Unavailable, err, "cannot list the cache %q", c.Dir) }
	kinds, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, cannot(err)
	}
	var entries []Entry
	for _, kind := range kinds {
		if !kind.IsDir() {
			continue
		}
		found, err := os.ReadDir(filepath.Join(c.Dir, kind.Name()))
		if err != nil {
			return nil, cannot(err)
		}
		for _, one := range found {
			if !one.IsDir() {
				continue // a lock
			}
			entry := Entry{Kind: kind.Name(), Key: one.Name(), Dir: filepath.Join(c.Dir, kind.Name(), one.Name())}
			info, err := os.Stat(filepath.Join(entry.Dir, marker))
			if err != nil || strings.Contains(one.Name(), partial) {
				entry.Partial = true
				if info, err = one.Info(); errors.Is(err, fs.ErrNotExist) {
					continue // finished or removed since it was listed
				}
			}
			if err != nil {
				return nil, cannot(err)
			}
			entry.Used = info.ModTime()
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// RemoveEntry deletes an entry that no sandbox uses, unless another process is
// building it: then removed is false.
func (c Cache) RemoveEntry(ctx context.Context, entry Entry) (removed bool, err error) {
	key, _, _ := strings.Cut(entry.Key, partial)
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock, err := LockFile(brief, filepath.Join(c.Dir, entry.Kind, key+".lock"))
	if brief.Err() != nil && ctx.Err() == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	// The marker goes first: a half-removed entry is not a layer.
	err = os.Remove(filepath.Join(entry.Dir, marker))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.RemoveAll(entry.Dir)
	}
	if err != nil {
		return false, fault.Wrap(fault.Unavailable, err, "cannot remove %q from the cache", entry.Key)
	}
	return true, nil
}
