package git

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
	"golang.org/x/sys/unix"
)

// The flags of an index entry beside its name's length (gitformat-index(5)):
// assume-valid, extended, and two bits for the stage of a conflict. An entry
// with any of them is git's to judge.
const oddEntry = 0xf000

// Limits of plainlyClean. Beyond them git is not slower.
const (
	plainIndex = 256 << 10 // bytes of the index, some thousand files
	plainNames = 20_000    // names in directories
)

// plainlyClean reports whether the user's checkout is clean beyond doubt, without
// starting git: the index is HEAD's tree, every file in it is exactly as git
// last saw it, and there is no other file that git would not ignore. False means
// nothing. Only the index and ignore files are read.
func (r *Repository) plainlyClean(ctx context.Context) bool {
	path := filepath.Join(r.GitDir, "index")
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil || st.Size > plainIndex || r.HeadTree == "" {
		return false
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	c := cleanCheck{top: r.Top, size: NewHash(r.ObjectFormat).Size(), files: map[string][]byte{}, dirs: map[string]bool{"": true}}
	c.written.sec, c.written.nsec = stamp(st.Mtim.Unix())
	extensions, err := IndexEntries(content, r.ObjectFormat, c.take)
	if err != nil || cachedRoot(extensions, c.size) != r.HeadTree {
		return false
	}
	settings, err := r.Settings()
	if err != nil {
		return false
	}
	rules, err := r.Rules(settings)
	if err != nil {
		return false
	}
	stack := ignore.NewStack(settings.Truth("core.ignorecase"), rules.ExcludesFile, rules.Exclude)
	return c.walk(ctx, "", stack) && len(c.files) == 0
}

// cleanCheck compares an index with a work tree.
type cleanCheck struct {
	top     string
	size    int               // of an object id, in bytes
	files   map[string][]byte // entries not yet met
	dirs    map[string]bool   // directories above them; "" is the root
	written moment            // the index
	names   int               // that directories held so far
}

// moment is a time as an index holds it.
type moment struct{ sec, nsec uint32 }

func stamp(sec, nsec int64) (uint32, uint32) { return uint32(sec), uint32(nsec) }

func momentAt(entry []byte) moment {
	return moment{binary.BigEndian.Uint32(entry), binary.BigEndian.Uint32(entry[4:])}
}

// take notes an entry that can be judged by its times.
func (c *cleanCheck) take(entry []byte, path string) error {
	modified := momentAt(entry[EntryMtime:])
	racy := modified.sec > c.written.sec || modified.sec == c.written.sec && modified.nsec >= c.written.nsec
	if racy || binary.BigEndian.Uint16(entry[EntryOid+c.size:])&oddEntry != 0 {
		return ErrIndex
	}
	c.files[path] = entry
	for dir := path; ; {
		slash := strings.LastIndexByte(dir, '/')
		if slash < 0 || c.dirs[dir[:slash]] {
			return nil
		}
		dir = dir[:slash]
		c.dirs[dir] = true
	}
}

// walk looks at a directory and everything below it.
func (c *cleanCheck) walk(ctx context.Context, dir string, rules *ignore.Stack) bool {
	found, err := os.ReadDir(filepath.Join(c.top, dir))
	if c.names += len(found); err != nil || ctx.Err() != nil || c.names > plainNames {
		return false
	}
	own, ok := c.ignoreFile(dir, found)
	if !ok {
		return false
	}
	rules = rules.Enter(dir, own)
	for _, one := range found {
		name := one.Name()
		if strings.EqualFold(name, ".git") {
			if dir != "" {
				return false // perhaps a repository of its own
			}
			continue
		}
		path := Join(dir, name)
		entry, tracked := c.files[path]
		switch {
		case tracked:
			if !c.unchanged(path, entry) {
				return false
			}
			delete(c.files, path)
		case one.IsDir() && c.dirs[path]:
			if !c.walk(ctx, path, rules) {
				return false
			}
		case !rules.Ignored(path, one.IsDir()):
			return false
		}
	}
	return true
}

// ignoreFile reads the ignore file of a directory that has the given names.
func (c *cleanCheck) ignoreFile(dir string, found []os.DirEntry) (content []byte, ok bool) {
	for _, one := range found {
		if one.Name() != ".gitignore" {
			continue
		}
		if !one.Type().IsRegular() {
			return nil, false
		}
		content, err := readRules(filepath.Join(c.top, dir, ".gitignore"))
		return content, err == nil
	}
	return nil, true
}

// unchanged reports whether a file is the one that git last saw.
func (c *cleanCheck) unchanged(path string, entry []byte) bool {
	var st unix.Stat_t
	if unix.Lstat(filepath.Join(c.top, path), &st) != nil {
		return false
	}
	number := func(at int) uint32 { return binary.BigEndian.Uint32(entry[at:]) }
	var mode uint32
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFLNK:
		mode = 0o120000
	case unix.S_IFREG:
		mode = 0o100644
		if st.Mode&0o100 != 0 {
			mode = 0o100755
		}
	default:
		return false
	}
	var changed, modified moment
	changed.sec, changed.nsec = stamp(st.Ctim.Unix())
	modified.sec, modified.nsec = stamp(st.Mtim.Unix())
	return number(EntryMode) == mode && number(EntrySize) == uint32(st.Size) && number(EntryIno) == uint32(st.Ino) &&
		number(entryUID) == st.Uid && number(entryGID) == st.Gid &&
		momentAt(entry[EntryMtime:]) == modified && momentAt(entry[EntryCtime:]) == changed
}

// cachedRoot returns the tree that an index makes, as its extension TREE says
// (gitformat-index(5)). It is empty if there is none, or if entries are
// elsewhere: extensions in small letters change what the entries mean.
func cachedRoot(extensions []byte, size int) string {
	root := ""
	for len(extensions) >= 8 {
		length := uint64(binary.BigEndian.Uint32(extensions[4:]))
		if length > uint64(len(extensions)-8) || extensions[0] < 'A' || extensions[0] > 'Z' {
			return ""
		}
		body := extensions[8 : 8+length]
		if string(extensions[:4]) == cacheTree {
			root = treeOf(body, size)
		}
		extensions = extensions[8+length:]
	}
	return root
}

// treeOf reads the first node: an empty path, the number of entries (negative
// where the id is no longer true) and of subtrees, and the id.
func treeOf(node []byte, size int) string {
	text := string(node)
	header, rest, ok := strings.Cut(text, "\n")
	path, counts, ok2 := strings.Cut(header, "\x00")
	entries, _, ok3 := strings.Cut(counts, " ")
	count, err := strconv.Atoi(entries)
	if !ok || !ok2 || !ok3 || err != nil || path != "" || count < 0 || len(rest) < size {
		return ""
	}
	return hex.EncodeToString([]byte(rest[:size]))
}
