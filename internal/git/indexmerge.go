package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// parsedIndex is a git index taken apart: gitformat-index(5).
type parsedIndex struct {
	Paths   []string // sorted
	Entries [][]byte // in the same order
	cached  []byte   // the extension with the ids of directories; may be missing
}

// cacheTree is the name of that extension.
const cacheTree = "TREE"

// ReadIndex takes the index in a file apart.
func ReadIndex(path, format string) (*parsedIndex, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot read the index of a cached tree")
	}
	return ParseIndex(content, format)
}

// ParseIndex takes an index apart, of which content is part from then on.
func ParseIndex(content []byte, format string) (*parsedIndex, error) {
	cannot := func(err error) error {
		return fault.Wrap(fault.Internal, err, "cannot read the index of a cached tree")
	}
	x := &parsedIndex{}
	if len(content) >= IndexHeader {
		count := min(int(binary.BigEndian.Uint32(content[8:])), len(content)/EntryOid)
		x.Entries, x.Paths = make([][]byte, 0, count), make([]string, 0, count)
	}
	rest, err := IndexEntries(content, format, func(entry []byte, path string) error {
		x.Entries, x.Paths = append(x.Entries, entry), append(x.Paths, path)
		return nil
	})
	if err != nil {
		return nil, cannot(err)
	}
	if binary.BigEndian.Uint32(content[4:]) != 2 { // entries of version 3 have one more field
		return nil, cannot(ErrIndex)
	}
	for len(rest) >= 8 {
		size := int(binary.BigEndian.Uint32(rest[4:]))
		if size > len(rest)-8 {
			return nil, cannot(ErrIndex)
		}
		if string(rest[:4]) == cacheTree {
			x.cached = rest[8 : 8+size]
		}
		rest = rest[8+size:]
	}
	return x, nil
}

// Body puts the index together again, without the checksum.
func (x *parsedIndex) Body(format string) []byte {
	size := IndexHeader + len(x.cached) + 64
	for _, entry := range x.Entries {
		size += len(entry)
	}
	b := append(make([]byte, 0, size), "DIRC\x00\x00\x00\x02"...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(x.Entries)))
	for _, entry := range x.Entries {
		b = append(b, entry...)
	}
	if len(x.cached) > 0 {
		b = append(b, cacheTree...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(x.cached)))
		b = append(b, x.cached...)
	}
	return b
}

// Only returns an index of the paths that changes bring, without any stat data,
// and of the attribute files above them. wanted are those paths, each with a NUL.
func (x *parsedIndex) Only(changes []TreeDiff, format string) (body []byte, wanted string) {
	entries := map[string][]byte{}
	for _, d := range changes {
		if d.NewMode == 0 {
			continue
		}
		entries[d.Path] = newEntry(d)
		wanted += d.Path + "\x00"
		for dir := path.Dir(d.Path); ; dir = path.Dir(dir) {
			name := path.Join(dir, ".gitattributes")
			if at, ok := slices.BinarySearch(x.Paths, name); ok && entries[name] == nil {
				entries[name] = x.Entries[at]
			}
			if dir == "." {
				break
			}
		}
	}
	small := &parsedIndex{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		small.Entries = append(small.Entries, entries[name])
	}
	return small.Body(format), wanted
}

// newEntry returns the entry of a file without stat data.
func newEntry(d TreeDiff) []byte {
	entry := make([]byte, EntryOid)
	binary.BigEndian.PutUint32(entry[EntryMode:], d.NewMode)
	oid, _ := hex.DecodeString(d.NewOid) // hex by ParseRaw's source; a wrong one git refuses
	entry = append(entry, oid...)
	entry = binary.BigEndian.AppendUint16(entry, uint16(min(len(d.Path), nameMask)))
	entry = append(entry, d.Path...)
	return append(entry, make([]byte, 8-len(entry)%8)...)
}

// With returns the index after changes, whose new entries are in above.
func (x *parsedIndex) With(above *parsedIndex, changes []TreeDiff, format string) *parsedIndex {
	fresh := make(map[string][]byte, len(above.Paths))
	for n, name := range above.Paths {
		fresh[name] = above.Entries[n]
	}
	invalid := map[string]bool{}
	for _, d := range changes {
		for dir := path.Dir(d.Path); ; dir = path.Dir(dir) {
			invalid[dir] = true
			if dir == "." {
				break
			}
		}
	}
	whole := &parsedIndex{
		Paths:   make([]string, 0, len(x.Paths)+len(changes)),
		Entries: make([][]byte, 0, len(x.Paths)+len(changes)),
		cached:  invalidate(x.cached, invalid, NewHash(format).Size()),
	}
	add := func(names []string, entries [][]byte) {
		whole.Paths, whole.Entries = append(whole.Paths, names...), append(whole.Entries, entries...)
	}
	changes = slices.SortedFunc(slices.Values(changes), func(a, b TreeDiff) int { return strings.Compare(a.Path, b.Path) })
	from := 0 // what is before it has been added
	for _, d := range changes {
		at, was := slices.BinarySearch(x.Paths[from:], d.Path)
		add(x.Paths[from:from+at], x.Entries[from:from+at])
		if from += at; was {
			from++
		}
		if d.NewMode != 0 {
			add([]string{d.Path}, [][]byte{fresh[d.Path]})
		}
	}
	add(x.Paths[from:], x.Entries[from:])
	return whole
}

// invalidate marks directories of a cache tree extension as unknown: git then
// reads their trees. Unreadable parts are dropped, which costs git more time.
func invalidate(cached []byte, directories map[string]bool, size int) []byte {
	var out []byte
	var walk func(dir string) bool
	walk = func(dir string) bool {
		name, rest, ok := bytes.Cut(cached, []byte{0})
		counts, rest, ok2 := bytes.Cut(rest, []byte{'\n'})
		count, subtrees, ok3 := strings.Cut(string(counts), " ")
		below, err := strconv.Atoi(subtrees)
		if !ok || !ok2 || !ok3 || err != nil || below < 0 {
			return false
		}
		var oid []byte
		if !strings.HasPrefix(count, "-") {
			if len(rest) < size {
				return false
			}
			oid, rest = rest[:size], rest[size:]
		}
		dir = path.Join(dir, string(name))
		if directories[dir] {
			count, oid = "-1", nil
		}
		cached = rest
		out = append(append(append(out, name...), 0), count+" "+subtrees+"\n"...)
		out = append(out, oid...)
		for range below {
			if !walk(dir) {
				return false
			}
		}
		return true
	}
	if len(cached) == 0 || !walk(".") || len(cached) != 0 {
		return nil
	}
	return out
}
