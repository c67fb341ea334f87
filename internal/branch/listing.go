package branch

import (
	"encoding/binary"
	"strings"
)

// layerKind is what the layers hold at a path.
type layerKind int

const (
	layerNone layerKind = iota
	layerFile           // a file or link
	layerDir
	layerGitlink // an empty directory: a tree has none, so it is a submodule
)

// beneath is what lies below the upper directory: what the base has.
type beneath interface {
	// lookup finds what the layers of set have at path and, for a directory,
	// the layers that have one there.
	lookup(set []int, path string) (layerKind, []int, error)
	// read gives a regular file that shows through, nil when there is none.
	read(set []int, path string) ([]byte, error)
	// expand appends the tracked paths at or below path.
	expand(set []int, path string, found []string) ([]string, error)
	// size is that of a regular file, 0 when there is none.
	size(path string) (int64, error)
	all() []int
	close()
}

// listing is the base as the files that were copied into the upper directory.
// Nothing shows through: the upper directory has, or had, all of it.
type listing struct {
	files map[string]file
	dirs  map[string]struct{}
	met   map[string]struct{} // what the upper directory still has, as it was or changed
}

// openListing reads the index that [Copy.Make] left.
func openListing(path, format string) (*listing, error) {
	x, err := readIndex(path, format)
	if err != nil {
		return nil, err
	}
	l := &listing{
		files: make(map[string]file, len(x.paths)), dirs: map[string]struct{}{}, met: make(map[string]struct{}, len(x.paths)),
	}
	size := newHash(format).Size()
	number := func(entry []byte, at int) int64 { return int64(binary.BigEndian.Uint32(entry[at:])) }
	for n, name := range x.paths {
		entry := x.entries[n]
		l.files[name] = file{
			mode: uint32(number(entry, entryMode)), oid: string(entry[entryOid : entryOid+size]), size: number(entry, entrySize),
			mtime: number(entry, entryMtime)*1e9 + number(entry, entryMtime+4),
			ctime: number(entry, entryCtime)*1e9 + number(entry, entryCtime+4),
			ino:   uint64(number(entry, entryIno)),
		}
		for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
			if _, ok := l.dirs[name[:i]]; ok {
				break
			}
			l.dirs[name[:i]] = struct{}{}
		}
	}
	return l, nil
}

func (l *listing) lookup(_ []int, path string) (layerKind, []int, error) {
	if _, ok := l.dirs[path]; ok {
		return layerDir, nil, nil
	}
	switch f, ok := l.files[path]; {
	case !ok:
		return layerNone, nil, nil
	case f.mode == modeGitlink:
		return layerGitlink, nil, nil
	}
	return layerFile, nil, nil
}

func (l *listing) read([]int, string) ([]byte, error) { return nil, nil }

func (l *listing) expand(_ []int, path string, found []string) ([]string, error) {
	if _, ok := l.files[path]; ok {
		found = append(found, path)
	}
	if _, ok := l.dirs[path]; ok {
		for name := range l.files {
			if strings.HasPrefix(name, path+"/") {
				found = append(found, name)
			}
		}
	}
	return found, nil
}

func (l *listing) size(path string) (int64, error) {
	if f, ok := l.files[path]; ok && (f.mode == modeFile || f.mode == modeExecutable) {
		return f.size, nil
	}
	return 0, nil
}

func (l *listing) all() []int { return nil }

func (l *listing) close() {}

// unchanged tells whether a file of the base is still as it was copied. An
// index keeps the lower half of inodes and sizes: gitformat-index(5).
func (l *listing) unchanged(path string, now file) bool {
	was, ok := l.files[path]
	return ok && was.ino != 0 && was.mode == now.mode && uint32(was.ino) == uint32(now.ino) &&
		uint32(was.size) == uint32(now.size) && was.mtime == now.mtime && was.ctime == now.ctime
}

func (l *listing) meet(path string) { l.met[path] = struct{}{} }

// meetBelow is meet for everything at or below path.
func (l *listing) meetBelow(path string) {
	names, _ := l.expand(nil, path, nil) // never fails
	for _, name := range names {
		l.meet(name)
	}
}

// missing lists the files of the base that the upper directory has no more.
func (l *listing) missing() []string {
	var names []string
	for name := range l.files {
		if _, ok := l.met[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
