package fault

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// diskTroubles are the errors of a disk that cannot be written, or that keeps no locks (NFS
// without a lock manager), and what to type then; %s is a directory on it. Programs report them in
// libc's words.
var diskTroubles = []struct {
	cause syscall.Errno
	words string
	hint  string
}{
	{syscall.ENOSPC, "no space left on device", "df -h DIR; df -i DIR; make room there, and type the same again"},
	{syscall.ENOSPC, "out of diskspace", "df -h DIR; df -i DIR; make room there, and type the same again"}, // git's own word
	{syscall.EDQUOT, "disk quota exceeded", "quota -s; make room in DIR, and type the same again"},
	{syscall.EROFS, "read-only file system", "findmnt --target DIR tells why nothing can be written there"},
	{syscall.ENOLCK, "no locks available", "export XDG_STATE_HOME=/a/directory/on/a/local/disk"},
}

// DiskTrouble finds in a program's output that the disk with dir cannot be
// written; nil if it says no such thing.
func DiskTrouble(said, dir string) error {
	said = strings.ToLower(said)
	for _, one := range diskTroubles {
		if strings.Contains(said, one.words) {
			return &fs.PathError{Op: "write", Path: filepath.Join(dir, "."), Err: one.cause}
		}
	}
	return nil
}

// ofState reports whether a directory is where litterbox's state is, so that
// naming another place for it would help; a repository stays where it is. For an
// unknown directory it is true.
func ofState(dir string) bool {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return false
		}
		state = filepath.Join(home, ".local", "state")
	}
	if !filepath.IsAbs(dir) {
		return true
	}
	if real, err := filepath.EvalSymlinks(state); err == nil {
		state = real // the state's paths have no links
	}
	return dir == state || strings.HasPrefix(dir, filepath.Join(state, "litterbox"))
}

// diskHint names the disk that could not be written and the command to type;
// empty for every other error.
func diskHint(err error) string {
	if err == nil {
		return ""
	}
	for _, one := range diskTroubles {
		if !errors.Is(err, one.cause) && !strings.Contains(strings.ToLower(err.Error()), one.words) {
			continue
		}
		dir := ""
		var file *fs.PathError
		var link *os.LinkError
		switch {
		case errors.As(err, &file):
			dir = file.Path
		case errors.As(err, &link):
			dir = link.New
		}
		// The file may be missing; its directory exists.
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		if !filepath.IsAbs(dir) || strings.ContainsFunc(dir, func(r rune) bool { return r <= ' ' || strings.ContainsRune("'\"\\$`&;|<>()*?[]#~!{}", r) || r == 0x7f }) {
			dir = "." // nothing that a shell could misread
		}
		hint := strings.ReplaceAll(one.hint, "DIR", dir)
		if one.cause == syscall.EROFS && ofState(dir) {
			hint += "; export XDG_STATE_HOME=/a/writable/directory keeps litterbox's state elsewhere"
		}
		return hint
	}
	return ""
}
