package remote

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
)

// A layer of the cache that is made after another one shares files with it by hard
// link: the packs of a history that has grown. If the machine has the older one,
// these are not sent again.

// nearest is how many layers beside one are considered, the newest first.
const nearest = 8

// part is a layer on its way.
type part struct {
	outpost.Part
	on    string // the key of the layer that it shares files with; empty: none
	bytes int64  // to send, not counting names
}

// near looks for a layer that the machine has and that shares files with the one at
// dir. It may find none: then everything is sent.
func (c *client) near(ctx context.Context, dir string) part {
	whole := part{Part: outpost.Part{Dir: dir}}
	linked := map[fileID]int64{} // the files here that are elsewhere too
	walk(dir, func(_ string, id fileID, info fs.FileInfo, links uint64) {
		if whole.bytes += info.Size(); links > 1 {
			linked[id] = info.Size()
		}
	})
	if len(linked) == 0 {
		return whole
	}
	found := map[string]string{} // key to directory
	var keys []string
	for _, beside := range besides(dir) {
		if key, err := layerKey(beside); err == nil {
			found[key], keys = beside, append(keys, key)
		}
	}
	if len(keys) == 0 {
		return whole
	}
	answer, err := c.ask(ctx, outpost.Request{Op: outpost.OpHave, Keys: keys})
	if err != nil {
		return whole // the transfer reports it
	}
	best := whole
	for _, key := range keys {
		if slices.Contains(answer.Missing, key) {
			continue
		}
		paths, shared := map[fileID]string{}, int64(0)
		walk(found[key], func(path string, id fileID, info fs.FileInfo, _ uint64) {
			if _, has := linked[id]; has && paths[id] == "" {
				paths[id], shared = path, shared+info.Size()
			}
		})
		if len(paths) > 0 && whole.bytes-shared < best.bytes {
			best = part{on: key, bytes: whole.bytes - shared, Part: outpost.Part{Dir: dir, Same: func(info fs.FileInfo) string {
				id, _, ok := identify(info)
				if !ok {
					return ""
				}
				return paths[id]
			}}}
		}
	}
	return best
}

// besides lists the layers beside one in its cache, the newest first.
func besides(dir string) []string {
	all, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(dir)), "*", filepath.Base(dir)))
	if err != nil {
		return nil // a name that is a pattern: none is known
	}
	type aged struct {
		dir string
		age int64
	}
	var found []aged
	for _, one := range all {
		if info, err := os.Stat(one); err == nil && one != dir && info.IsDir() {
			found = append(found, aged{one, info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(found, func(a, b aged) int { return int(min(max(b.age-a.age, -1), 1)) })
	var dirs []string
	for _, one := range found[:min(len(found), nearest)] {
		dirs = append(dirs, one.dir)
	}
	return dirs
}

// walk visits the regular files below dir, by their paths there. Unreadable files
// are left out: the transfer fails on them, or they are another layer's.
func walk(dir string, visit func(path string, id fileID, info fs.FileInfo, links uint64)) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		id, links, ok := identify(info)
		below, err := filepath.Rel(dir, path)
		if ok && err == nil {
			visit(below, id, info, links)
		}
		return nil
	})
}
