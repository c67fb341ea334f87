package layer

import (
	"encoding/binary"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Kind is the kind of file that the layers have at a path.
type Kind int

const (
	KindNone Kind = iota
	KindFile      // a file or link
	KindDir
	KindGitlink // an empty directory: a tree has none, so it is a submodule
)

// Beneath is the base, below the upper directory.
type Beneath interface {
	// Lookup finds what the layers of set have at path and, for a directory,
	// the layers that have one there.
	Lookup(set []int, path string) (Kind, []int, error)
	// Read returns a regular file that shows through, nil if there is none.
	Read(set []int, path string) ([]byte, error)
	// Expand appends the tracked paths at or below path.
	Expand(set []int, path string, found []string) ([]string, error)
	// Size returns the size of a regular file, 0 if there is none.
	Size(path string) (int64, error)
	All() []int
	Close()
}

// Listing is the base as the files that were copied into the upper directory.
// Nothing shows through: the upper directory has, or had, all of it.
type Listing struct {
	Files map[string]File
	dirs  map[string]struct{}
	met   map[string]struct{} // files that the upper directory still has, changed or not
}

// OpenListing reads the index that [Copy.Make] left.
func OpenListing(path, format string) (*Listing, error) {
	x, err := git.ReadIndex(path, format)
	if err != nil {
		return nil, err
	}
	l := &Listing{
		Files: make(map[string]File, len(x.Paths)), dirs: map[string]struct{}{}, met: make(map[string]struct{}, len(x.Paths)),
	}
	size := git.NewHash(format).Size()
	number := func(entry []byte, at int) int64 { return int64(binary.BigEndian.Uint32(entry[at:])) }
	for n, name := range x.Paths {
		entry := x.Entries[n]
		l.Files[name] = File{
			Mode: uint32(number(entry, git.EntryMode)), Oid: string(entry[git.EntryOid : git.EntryOid+size]), Size: number(entry, git.EntrySize),
			Mtime: number(entry, git.EntryMtime)*1e9 + number(entry, git.EntryMtime+4),
			Ctime: number(entry, git.EntryCtime)*1e9 + number(entry, git.EntryCtime+4),
			Ino:   uint64(number(entry, git.EntryIno)),
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

func (l *Listing) Lookup(_ []int, path string) (Kind, []int, error) {
	if _, ok := l.dirs[path]; ok {
		return KindDir, nil, nil
	}
	switch f, ok := l.Files[path]; {
	case !ok:
		return KindNone, nil, nil
	case f.Mode == git.ModeGitlink:
		return KindGitlink, nil, nil
	}
	return KindFile, nil, nil
}

func (l *Listing) Read([]int, string) ([]byte, error) { return nil, nil }

func (l *Listing) Expand(_ []int, path string, found []string) ([]string, error) {
	if _, ok := l.Files[path]; ok {
		found = append(found, path)
	}
	if _, ok := l.dirs[path]; ok {
		for name := range l.Files {
			if strings.HasPrefix(name, path+"/") {
				found = append(found, name)
			}
		}
	}
	return found, nil
}

func (l *Listing) Size(path string) (int64, error) {
	if f, ok := l.Files[path]; ok && (f.Mode == git.ModeFile || f.Mode == git.ModeExecutable) {
		return f.Size, nil
	}
	return 0, nil
}

func (l *Listing) All() []int { return nil }

func (l *Listing) Close() {}

// Unchanged reports whether a file of the base is still as it was copied. An
// index keeps the lower half of inodes and sizes: gitformat-index(5).
func (l *Listing) Unchanged(path string, now File) bool {
	was, ok := l.Files[path]
	return ok && was.Ino != 0 && was.Mode == now.Mode && uint32(was.Ino) == uint32(now.Ino) &&
		uint32(was.Size) == uint32(now.Size) && was.Mtime == now.Mtime && was.Ctime == now.Ctime
}

func (l *Listing) Meet(path string) { l.met[path] = struct{}{} }

// MeetBelow is meet for everything at or below path.
func (l *Listing) MeetBelow(path string) {
	names, _ := l.Expand(nil, path, nil) // never fails
	for _, name := range names {
		l.Meet(name)
	}
}

// Missing lists the files of the base that the upper directory no longer has.
func (l *Listing) Missing() []string {
	var names []string
	for name := range l.Files {
		if _, ok := l.met[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
