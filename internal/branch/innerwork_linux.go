package branch

import (
	"errors"
	"io"
	"path"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"golang.org/x/sys/unix"
)

// maxInnerPacked is how much of packed-refs inside is read, in bytes.
const maxInnerPacked = 1 << 20

// innerRefs are the branches and the stash of the git inside, as files of the
// upper directory name them (gitrepository-layout(5)): name to commit. Refs
// that only the layers have are those that a sandbox begins with. What cannot
// be read is left out, and with it whatever a reftable holds.
func innerRefs(upper string) (map[string]string, error) {
	top, err := layer.OpenDir(upper)
	if err != nil {
		return nil, err
	}
	defer top.Dir.Close()
	found := map[string]string{}
	for line := range strings.Lines(small(top, ".git/packed-refs", maxInnerPacked)) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if git.IsOid(oid) && (strings.HasPrefix(name, git.Heads) || name == stash) && len(found) < maxInnerRefs {
			found[name] = oid
		}
	}
	names := []string{stash}
	for below := []string{strings.TrimSuffix(git.Heads, "/")}; len(below) > 0 && len(names) < maxInnerRefs; {
		dir := below[0]
		below = below[1:]
		for name, isDir := range list(top, ".git/"+dir, maxInnerRefs) {
			if at := path.Join(dir, name); isDir {
				below = append(below, at)
			} else {
				names = append(names, at)
			}
		}
	}
	for _, name := range names {
		if oid := strings.TrimSuffix(small(top, ".git/"+name, 128), "\n"); git.IsOid(oid) {
			found[name] = oid
		}
	}
	return found, nil
}

const stash = "refs/stash"

// small reads a regular file of at most limit bytes; "" where there is none.
func small(r layer.Root, name string, limit int64) string {
	f, err := hostile.File(r.Dir, name)
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

// list says what at most that many entries of a directory are: directories or
// not.
func list(r layer.Root, dir string, most int) map[string]bool {
	f, err := r.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, err := f.ReadDir(most)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	found := map[string]bool{}
	for _, entry := range entries {
		found[entry.Name()] = entry.IsDir()
	}
	return found
}
