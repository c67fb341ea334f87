package layer

import (
	"io"
	"path"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"golang.org/x/sys/unix"
)

// maxHead bounds a file that names a branch or a commit, in bytes.
const maxHead = 4096

// Rebranch puts the git inside a fork on a branch of another name, at the same
// commit. upper is still empty, and frozen lists the directories below it, as
// the other sandbox left them. The git inside stays as it is if it is elsewhere,
// or if its files are not as git makes them.
func Rebranch(upper string, frozen []string, from, to string, o git.Owner) error {
	w, err := OpenWritten(upper, frozen, false)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := git.CheckRef(to); err != nil {
		return err
	}
	commit := strings.TrimSuffix(w.Small(".git/"+git.Heads+from, maxHead), "\n")
	if w.Small(".git/HEAD", maxHead) != "ref: "+git.Heads+from+"\n" || !git.IsOid(commit) {
		return nil
	}
	for dir := path.Dir(".git/" + git.Heads + to); dir != "."; dir = path.Dir(dir) {
		above, err := w.Walk(strings.TrimSuffix(path.Dir(dir), "."))
		if err != nil {
			return nil // closed by the sandbox
		}
		_, st, err := above.Lookup(path.Base(dir))
		above.Close()
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return nil // something is where a directory must be
		}
	}
	return PrepareUpper(upper, to, commit, o)
}

// Small reads a regular file, at most limit bytes of it; "" if there is none.
func (w Written) Small(name string, limit int64) string {
	d, err := w.Walk(path.Dir(name))
	if err != nil {
		return ""
	}
	defer d.Close()
	part, _, err := d.Lookup(path.Base(name))
	if err != nil {
		return ""
	}
	f, err := hostile.File(part.Root.Dir, name)
	if err != nil {
		return ""
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return ""
	}
	return string(content)
}
