package layer

import (
	"io"
	"path"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"golang.org/x/sys/unix"
)

// Rebranch has the git inside of a fork stand on a branch of another name, at
// the same commit. upper is empty yet, and frozen what lies below it, as the
// other sandbox left it: git inside stays as it is where it stands elsewhere, or
// where its files are not what git makes.
func Rebranch(upper string, frozen []string, from, to string, o git.Owner) error {
	w, err := OpenWritten(upper, frozen, false)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := git.CheckRef(to); err != nil {
		return err
	}
	commit := strings.TrimSuffix(w.small(".git/"+git.Heads+from), "\n")
	if w.small(".git/HEAD") != "ref: "+git.Heads+from+"\n" || !git.IsOid(commit) {
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
			return nil // something stands where a directory would have to
		}
	}
	return PrepareUpper(upper, to, commit, o)
}

// small reads a small regular file; "" where there is none.
func (w Written) small(name string) string {
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
	content, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return ""
	}
	return string(content)
}
