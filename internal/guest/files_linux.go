package guest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// piece is how much of a file goes into one frame.
const piece = 32<<10 - 64

// read sends a file, or a part of it.
func (g *guest) read(x *exchange) (wire.FileInfo, error) {
	path, err := g.path(x.request.Path)
	if err != nil {
		return wire.FileInfo{}, err
	}
	if x.request.Offset < 0 || x.request.Limit < 0 {
		return wire.FileInfo{}, fault.New(fault.Invalid, "cannot read %q from a negative offset or length", path)
	}
	f, info, err := proc.OpenRegular(path)
	if err != nil {
		return wire.FileInfo{}, wrap(err, "cannot read %q", path)
	}
	defer f.Close()
	var from io.Reader = f
	if x.request.Offset > 0 {
		if _, err := f.Seek(x.request.Offset, io.SeekStart); err != nil {
			return wire.FileInfo{}, wrap(err, "cannot read %q", path)
		}
	}
	if x.request.Limit > 0 {
		from = io.LimitReader(f, x.request.Limit)
	}
	// The bare reader: os.File would look for a faster way to the frames.
	if _, err := io.CopyBuffer(frames{x.out}, struct{ io.Reader }{from}, make([]byte, piece)); err != nil {
		return wire.FileInfo{}, wrap(err, "cannot read %q", path)
	}
	return wire.FileInfo{Path: []byte(path), Size: info.Size(), Mode: unixMode(info)}, nil
}

// frames turns writes into output frames.
type frames struct{ w *wire.Writer }

func (f frames) Write(p []byte) (int, error) {
	for sent := 0; sent < len(p); {
		n := min(len(p)-sent, piece)
		if err := f.w.Frame(wire.KindStdout, p[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return len(p), nil
}

// incoming turns input frames into a reader that ends with the end frame, and
// fails when the stream ends before it.
type incoming struct {
	r    *wire.Reader
	rest []byte
	over bool
}

func (i *incoming) Read(p []byte) (int, error) {
	for len(i.rest) == 0 {
		if i.over {
			return 0, io.EOF
		}
		kind, payload, err := i.r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, err
		case kind == wire.KindStdinEnd:
			i.over = true
		case kind == wire.KindStdin:
			i.rest = payload // valid until the next frame is asked for
		}
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

// write replaces a file in one step: a reader sees the old content or the new,
// also after a crash in between.
func (g *guest) write(x *exchange) (wire.FileInfo, error) {
	asked, err := g.path(x.request.Path)
	if err != nil {
		return wire.FileInfo{}, err
	}
	if strings.HasSuffix(string(x.request.Path), "/") {
		return wire.FileInfo{}, fault.New(fault.Invalid, "cannot write %q: it names a directory", asked)
	}
	path, mode, err := target(asked)
	if err != nil {
		return wire.FileInfo{}, wrap(err, "cannot write %q", asked)
	}
	if x.request.Mode != 0 {
		mode = x.request.Mode & 0o7777
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return wire.FileInfo{}, wrap(err, "cannot make the directory of %q", asked)
	}
	size, err := g.replace(path, mode, &incoming{r: x.in})
	if err != nil {
		return wire.FileInfo{}, wrap(err, "cannot write %q", asked)
	}
	return wire.FileInfo{Path: []byte(path), Size: size, Mode: mode}, nil
}

// append writes a file again with its old content and the new, so that a reader
// never sees half of that.
func (g *guest) append(x *exchange) (wire.FileInfo, error) {
	asked, err := g.path(x.request.Path)
	if err != nil {
		return wire.FileInfo{}, err
	}
	path, mode, err := target(asked)
	if err != nil {
		return wire.FileInfo{}, wrap(err, "cannot append to %q", asked)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return wire.FileInfo{}, wrap(err, "cannot make the directory of %q", asked)
	}
	before, _, err := proc.OpenRegular(path)
	var from io.Reader = &incoming{r: x.in}
	switch {
	case err == nil:
		defer before.Close()
		from = io.MultiReader(before, from)
	case !errors.Is(err, fs.ErrNotExist):
		return wire.FileInfo{}, wrap(err, "cannot append to %q", asked)
	}
	size, err := g.replace(path, mode, from)
	if err != nil {
		return wire.FileInfo{}, wrap(err, "cannot append to %q", asked)
	}
	return wire.FileInfo{Path: []byte(path), Size: size, Mode: mode}, nil
}

// target finds the file to replace, behind symbolic links as a shell's ">"
// would, and the mode it should get.
func target(path string) (string, uint32, error) {
	const newMode = 0o644
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", 0, fault.New(fault.Invalid, "it is a symbolic link to nothing")
		}
		return path, newMode, nil
	}
	if err != nil {
		return "", 0, err
	}
	info, err := os.Lstat(real)
	switch {
	case err != nil:
		return "", 0, err
	case info.IsDir():
		return "", 0, unix.EISDIR
	case !info.Mode().IsRegular():
		return "", 0, fault.New(fault.Invalid, "not a regular file")
	}
	return real, unixMode(info), nil
}

// partialPrefix begins the name of a file that is being written.
const partialPrefix = "litterbox-write-"

// dropPartialWrites removes the remains of writes that a crash cut off before their
// answer.
func dropPartialWrites(workspace string) {
	git := filepath.Join(workspace, ".git")
	names, err := proc.ReadNames(git)
	if err != nil {
		return // no repository, no leftovers
	}
	for _, name := range names {
		if strings.HasPrefix(name, partialPrefix) {
			_ = os.Remove(filepath.Join(git, name))
		}
	}
}

// replace writes a new file beside path and renames it. In the workspace it
// grows inside .git, where no commit taken meanwhile can see it.
func (g *guest) replace(path string, mode uint32, from io.Reader) (size int64, err error) {
	if mode&unix.S_ISGID != 0 && !g.Nested {
		return 0, unix.EPERM // as for commands, see setGroup
	}
	beside := filepath.Dir(path)
	if git := filepath.Join(g.Workspace, ".git"); strings.HasPrefix(path, g.Workspace+"/") && sameDevice(git, beside) {
		beside = git
	}
	f, err := os.CreateTemp(beside, partialPrefix+"*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	size, err = io.Copy(f, struct{ io.Reader }{from})
	if err == nil {
		err = unix.Fchmod(int(f.Fd()), mode) // not subject to the umask
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return size, os.Rename(f.Name(), path)
}

// sameDevice reports whether both are directories on one file system.
func sameDevice(a, b string) bool {
	var sa, sb unix.Stat_t
	return unix.Lstat(a, &sa) == nil && unix.Stat(b, &sb) == nil &&
		sa.Mode&unix.S_IFMT == unix.S_IFDIR && sa.Dev == sb.Dev
}

// unixMode is the mode as chmod(2) counts it.
func unixMode(info fs.FileInfo) uint32 {
	mode := uint32(info.Mode().Perm())
	for bit, unixBit := range map[fs.FileMode]uint32{
		fs.ModeSetuid: unix.S_ISUID, fs.ModeSetgid: unix.S_ISGID, fs.ModeSticky: unix.S_ISVTX,
	} {
		if info.Mode()&bit != 0 {
			mode |= unixBit
		}
	}
	return mode
}
