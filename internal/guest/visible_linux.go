package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
	"golang.org/x/sys/unix"
)

// realPath is where an open file is, no matter what links led to it.
func realPath(f *os.File) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
}

// hidden returns the component of a real path that begins with a dot. The
// directories above the workspace do not count.
func (g *guest) hidden(path string) (component string) {
	if path == g.Workspace {
		return ""
	}
	if inside, ok := strings.CutPrefix(path, g.Workspace+"/"); ok {
		path = inside
	}
	for name := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(name, ".") {
			return name
		}
	}
	return ""
}

func denyHidden(verb, path string) error {
	return fault.New(fault.Denied, "cannot %s %q: it is hidden, or lies in a hidden directory", verb, path)
}

// openVisible opens a file or directory for a tool that must not see hidden
// ones, unless hiddenToo, and nothing in a .git then either. It checks where the open file really is, so that no link, not even one
// planted a moment ago, leads to one. It also refuses what the kernel makes up: /proc/self is the guest here, whose memory holds
// the wire's key.
func (g *guest) openVisible(verb, path string, hiddenToo bool) (*os.File, string, error) {
	closed := func(path string) bool {
		if hiddenToo {
			return inGit(path)
		}
		return g.hidden(path) != ""
	}
	// The name is checked first: a hidden file is not even said to exist.
	if closed(path) {
		return nil, "", denyHidden(verb, path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, "", wrap(err, "cannot %s %q", verb, path)
	}
	real, err := realPath(f)
	var made unix.Statfs_t
	if err == nil {
		err = unix.Fstatfs(int(f.Fd()), &made)
	}
	switch {
	case err != nil:
		err = wrap(err, "cannot %s %q", verb, path)
	case closed(real):
		err = denyHidden(verb, path)
	case made.Type == unix.PROC_SUPER_MAGIC || made.Type == unix.SYSFS_MAGIC:
		err = fault.New(fault.Denied, "cannot %s %q: it is not a file but made up by the kernel", verb, path)
	default:
		return f, real, nil
	}
	return nil, "", errors.Join(err, f.Close())
}

// view sends a part of a file that is not hidden.
func (g *guest) view(x *exchange) (wire.View, error) {
	path, err := g.path(x.request.Path)
	if err != nil {
		return wire.View{}, err
	}
	r := x.request
	if r.Offset < 0 || r.Limit < 0 || r.Line < 0 {
		return wire.View{}, fault.New(fault.Invalid, "cannot read %q from a negative offset", path)
	}
	f, real, err := g.openVisible("read", path, x.request.Hidden)
	if err != nil {
		return wire.View{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return wire.View{}, wrap(err, "cannot read %q", path)
	case info.IsDir():
		return wire.View{}, fault.New(fault.Invalid, "cannot read %q: it is a directory", path)
	case !info.Mode().IsRegular():
		return wire.View{}, fault.New(fault.Invalid, "cannot read %q: it is not a regular file", path)
	}
	if r.Line > 1 {
		if r.Offset, err = offsetOfLine(f, r.Line); err != nil {
			return wire.View{}, wrap(err, "cannot read %q", path)
		}
	}
	if _, err := f.Seek(r.Offset, io.SeekStart); err != nil {
		return wire.View{}, wrap(err, "cannot read %q", path)
	}
	var from io.Reader = f
	if r.Limit > 0 {
		from = io.LimitReader(f, r.Limit)
	}
	if _, err := io.CopyBuffer(frames{x.out}, struct{ io.Reader }{from}, make([]byte, piece)); err != nil {
		return wire.View{}, wrap(err, "cannot read %q", path)
	}
	return wire.View{FileInfo: wire.FileInfo{Path: []byte(real), Size: info.Size(), Mode: unixMode(info)}, Offset: r.Offset}, nil
}

// offsetOfLine finds where a line begins; beyond the last one it is the end.
func offsetOfLine(r io.Reader, line int64) (int64, error) {
	var offset int64
	buf := make([]byte, piece)
	for missing := line - 1; missing > 0; {
		n, err := r.Read(buf)
		for i := range n {
			if buf[i] != '\n' {
				continue
			}
			if missing--; missing == 0 {
				return offset + int64(i) + 1, nil
			}
		}
		offset += int64(n)
		if errors.Is(err, io.EOF) {
			return offset, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return offset, nil
}

// put writes a file for a tool: nothing in a .git, whose content git and the
// host's import take for granted.
func (g *guest) put(x *exchange) (wire.FileInfo, error) {
	asked, err := g.path(x.request.Path)
	if err != nil {
		return wire.FileInfo{}, err
	}
	if strings.HasSuffix(string(x.request.Path), "/") {
		return wire.FileInfo{}, fault.New(fault.Invalid, "cannot write %q: it names a directory", asked)
	}
	real, err := resolve(asked)
	if err != nil {
		return wire.FileInfo{}, wrap(err, "cannot write %q", asked)
	}
	for _, path := range []string{asked, real} {
		if inGit(path) {
			return wire.FileInfo{}, fault.New(fault.Denied, "cannot write %q: git's own files are git's", asked).WithHint("git's own files change by git commands")
		}
		if x.request.Visible && g.hidden(path) != "" {
			return wire.FileInfo{}, denyHidden("write", asked)
		}
	}
	path, mode, err := target(real)
	if err != nil {
		return wire.FileInfo{}, wrap(err, "cannot write %q", asked)
	}
	if x.request.Mode != 0 {
		mode = x.request.Mode & 0o777
	}
	_, statErr := os.Lstat(path)
	created := errors.Is(statErr, fs.ErrNotExist)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return wire.FileInfo{}, wrap(err, "cannot make the directory of %q", asked)
	}
	if err := unchanged(path, x.request.Expect); err != nil {
		return wire.FileInfo{}, wrap(err, "cannot write %q", asked)
	}
	size, err := g.replace(path, mode, &incoming{r: x.in})
	if err != nil {
		return wire.FileInfo{}, wrap(err, "cannot write %q", asked)
	}
	return wire.FileInfo{Path: []byte(path), Size: size, Mode: mode, Created: created}, nil
}

// unchanged compares a file with an earlier read of it.
func unchanged(path, expect string) error {
	if expect == "" {
		return nil
	}
	f, _, err := proc.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, struct{ io.Reader }{f}); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != expect {
		return fault.New(fault.Conflict, "it has changed since it was read")
	}
	return nil
}

// resolve follows the links of a path, whose end need not exist yet.
func resolve(path string) (string, error) {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == "/" {
			return "", err
		}
		if _, err := os.Lstat(at); err == nil {
			return "", fault.New(fault.Invalid, "%q is a symbolic link to nothing", at)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// inGit reports whether a path lies in a .git, in any spelling that some system
// accepts for it (CVE-2014-9390).
func inGit(path string) bool {
	for name := range strings.SplitSeq(path, "/") {
		name = strings.Map(func(r rune) rune {
			switch {
			case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
				return -1 // HFS+ ignores these
			}
			return r
		}, name)
		name, _, _ = strings.Cut(name, ":") // an NTFS stream
		name = strings.TrimRight(name, ". ")
		if strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1") {
			return true
		}
	}
	return false
}
