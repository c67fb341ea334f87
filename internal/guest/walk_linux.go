package guest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
	"github.com/litterbox-sandbox/litterbox/internal/git/wildmatch"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// The bounds of a walk: the tree is a sandbox's, so it may be of any size.
const (
	walkTime     = 10 * time.Second
	walkDepth    = 200
	walkListed   = 50_000 // entries of one directory
	walkResults  = 5_000
	ignoreSize   = 128 << 10 // bytes of one .gitignore
	defaultLimit = 200
	maxBraces    = 64 // alternatives of one glob
)

// walk goes through the files below a directory that are neither hidden nor
// ignored, sorted by name, and follows no link.
type walk struct {
	ctx   context.Context
	globs []wildmatch.Glob // none: everything
	paths []bool           // whether that glob is for the path, not the name
	out   *bufio.Writer
	limit int
	count int
	found wire.Found
	// file is called with an open directory, the file's name in it and its path.
	file func(w *walk, dir *os.File, name, path string, kind fs.FileMode) error
}

// errStop ends a walk early; found.Stopped says why.
var errStop = fault.New(fault.Canceled, "enough was found")

// begin opens where a walk starts and prepares it.
func (g *guest) begin(x *exchange, verb string) (*walk, *os.File, context.CancelFunc, error) {
	asked := x.request.Path
	if len(asked) == 0 {
		asked = []byte(".")
	}
	path, err := g.path(asked)
	if err != nil {
		return nil, nil, nil, err
	}
	globs, paths, err := globsOf(string(x.request.Glob))
	if err != nil {
		return nil, nil, nil, err
	}
	f, real, err := g.openVisible(verb, path, false)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), walkTime)
	go func() {
		// The client sends nothing more; the end of the stream is its end.
		_, _, _ = x.in.Next()
		cancel()
	}()
	w := &walk{
		ctx: ctx, globs: globs, paths: paths, out: bufio.NewWriterSize(frames{x.out}, piece),
		limit: int(min(cmp.Or(x.request.Limit, defaultLimit), walkResults)), found: wire.Found{Path: []byte(real)},
	}
	return w, f, cancel, nil
}

// globsOf compiles a glob. One without a slash is for names in any directory;
// {a,b} are alternatives.
func globsOf(glob string) (globs []wildmatch.Glob, paths []bool, err error) {
	glob = strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
	if glob == "" {
		return nil, nil, nil
	}
	all, ok := alternatives(glob)
	if !ok {
		return nil, nil, fault.New(fault.Invalid, "cannot use the glob %q: it has more than %d alternatives", glob, maxBraces)
	}
	for _, one := range all {
		switch {
		case unclosed(one):
			return nil, nil, fault.New(fault.Invalid, "cannot use the glob %q: it has a [ without a ], and matches nothing", glob).
				WithHint("write \\[ for the character itself")
		case brace(one) >= 0:
			return nil, nil, fault.New(fault.Invalid, "cannot use the glob %q: it has a { without a }", glob).
				WithHint("write \\{ for the character itself")
		}
		isPath := strings.Contains(one, "/")
		compiled := wildmatch.Compile(one, wildmatch.Mode{Path: isPath})
		if compiled.Never() {
			return nil, nil, fault.New(fault.Invalid, "cannot use the glob %q: it matches nothing", glob).
				WithHint("write \\[ and \\\\ for the characters themselves; a class has a name such as [:alpha:]")
		}
		globs = append(globs, compiled)
		paths = append(paths, isPath)
	}
	return globs, paths, nil
}

// unclosed reports whether a glob has a bracket that nothing closes: it then
// matches no file (gitignore(5) and fnmatch(3) agree).
func unclosed(glob string) bool {
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '[':
			end := i + 1
			if end < len(glob) && (glob[end] == '!' || glob[end] == '^') {
				end++
			}
			// A ] that comes first stands for itself.
			closing := strings.IndexByte(glob[min(end+1, len(glob)):], ']')
			if closing < 0 {
				return true
			}
			i = end + 1 + closing
		}
	}
	return false
}

// brace is the position of a glob's first opening brace that stands for more
// than itself, or -1.
func brace(glob string) int {
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '{':
			return i
		}
	}
	return -1
}

// alternatives expands the first pair of braces, and those that follow.
func alternatives(glob string) ([]string, bool) {
	open := brace(glob)
	if open < 0 {
		return []string{glob}, true
	}
	depth, start := 0, open+1
	var parts []string
	for i := open; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			i++
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts, start = append(parts, glob[start:i]), i+1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			parts = append(parts, glob[start:i])
			var all []string
			for _, part := range parts {
				more, ok := alternatives(glob[:open] + part + glob[i+1:])
				if all = append(all, more...); !ok || len(all) > maxBraces {
					return nil, false
				}
			}
			return all, true
		}
	}
	return []string{glob}, true // the brace has no end, which the caller refuses
}

func (w *walk) wanted(name, path string) bool {
	for i := range w.globs {
		text := name
		if w.paths[i] {
			text = path
		}
		if w.globs[i].Match(text) {
			return true
		}
	}
	return len(w.globs) == 0
}

// stack gathers the ignore files from the workspace down to dir. Outside the
// workspace, and in an ignored directory that was asked for by name, nothing is
// ignored.
func (g *guest) stack(dir string) *ignore.Stack {
	inside, ok := strings.CutPrefix(dir+"/", g.Workspace+"/")
	if !ok {
		return nil
	}
	exclude, _ := proc.ReadSmall(filepath.Join(g.Workspace, ".git/info/exclude"), ignoreSize)
	s := ignore.NewStack(false, exclude)
	at := ""
	enter := func() {
		content, _ := proc.ReadSmall(filepath.Join(g.Workspace, at, ".gitignore"), ignoreSize)
		s = s.Enter(at, content)
	}
	enter()
	for name := range strings.SplitSeq(strings.TrimSuffix(inside, "/"), "/") {
		if name == "" {
			continue
		}
		at = strings.TrimPrefix(at+"/"+name, "/")
		if s.Ignored(at, true) {
			return nil
		}
		if at != strings.TrimSuffix(inside, "/") { // the last is entered by the walk
			enter()
		}
	}
	return s
}

// run walks down from an open directory.
func (w *walk) run(dir *os.File, inside string, s *ignore.Stack) error {
	err := w.directory(dir, "", inside, s, 0)
	if errors.Is(err, errStop) {
		err = nil
	}
	return errors.Join(err, w.out.Flush())
}

// directory visits one directory; path is relative to where the walk began,
// inside to the workspace.
func (w *walk) directory(dir *os.File, path, inside string, s *ignore.Stack, depth int) error {
	if w.ctx.Err() != nil {
		w.found.Stopped = "time"
		return errStop
	}
	if s != nil {
		content, _ := readAt(dir, ".gitignore", ignoreSize)
		s = s.Enter(inside, content)
	}
	entries, err := dir.ReadDir(walkListed)
	if err != nil && !errors.Is(err, io.EOF) {
		w.found.Skipped++
		return nil
	}
	if len(entries) == walkListed {
		w.found.Stopped = "size"
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		below, insideBelow := join(path, name), join(inside, name)
		if s != nil && s.Ignored(insideBelow, entry.IsDir()) {
			continue
		}
		if err := w.file(w, dir, name, below, entry.Type()); err != nil {
			return err
		}
		if !entry.IsDir() {
			continue
		}
		if depth == walkDepth {
			w.found.Stopped = "size"
			continue
		}
		if err := w.enter(dir, name, below, insideBelow, s, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) enter(dir *os.File, name, path, inside string, s *ignore.Stack, depth int) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		w.found.Skipped++
		return nil
	}
	child := os.NewFile(uintptr(fd), name)
	var made unix.Statfs_t
	if unix.Fstatfs(fd, &made) != nil || made.Type == unix.PROC_SUPER_MAGIC || made.Type == unix.SYSFS_MAGIC {
		return child.Close() // made up by the kernel, and partly the guest's own
	}
	return errors.Join(w.directory(child, path, inside, s, depth+1), child.Close())
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// openAt opens a regular file in an open directory and follows no link.
func openAt(dir *os.File, name string) (*os.File, fs.FileInfo, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = unix.EINVAL
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func readAt(dir *os.File, name string, limit int64) ([]byte, error) {
	f, _, err := openAt(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// send puts one result into the answer.
func (w *walk) send(result any) error {
	if w.count == w.limit {
		w.found.Stopped = "limit"
		return errStop
	}
	w.count++
	line, err := json.Marshal(result)
	if err != nil {
		return err
	}
	_, err = w.out.Write(append(line, '\n'))
	return err
}

// find lists files.
func (g *guest) find(x *exchange) (wire.Found, error) {
	w, dir, cancel, err := g.begin(x, "list")
	if err != nil {
		return wire.Found{}, err
	}
	defer cancel()
	defer dir.Close()
	start := string(w.found.Path)
	if info, err := dir.Stat(); err != nil || !info.IsDir() {
		return wire.Found{}, fault.New(fault.Invalid, "cannot list %q: it is not a directory", start)
	}
	w.file = func(w *walk, dir *os.File, name, path string, kind fs.FileMode) error {
		if kind.IsDir() && len(w.globs) > 0 || !w.wanted(name, path) {
			return nil
		}
		entry := wire.Entry{Path: []byte(path), Type: "other"}
		switch {
		case kind.IsDir():
			entry.Type = "dir"
		case kind&fs.ModeSymlink != 0:
			entry.Type = "link"
		case kind.IsRegular():
			entry.Type = "file"
			var stat unix.Stat_t
			if unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
				entry.Size = stat.Size
			}
		}
		w.found.Files++
		return w.send(entry)
	}
	err = w.run(dir, g.inside(start), g.stack(start))
	return w.found, err
}

// inside is a path relative to the workspace; empty for the workspace itself,
// and for paths outside.
func (g *guest) inside(path string) string {
	inside, ok := strings.CutPrefix(path, g.Workspace+"/")
	if !ok {
		return ""
	}
	return inside
}
