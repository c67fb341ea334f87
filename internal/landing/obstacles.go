package landing

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// inTheWay names the obstacles, and says how to go on.
func inTheWay(paths []string, target MergeTarget) error {
	named := make([]string, 0, 3)
	for _, p := range paths[:min(3, len(paths))] {
		named = append(named, strconv.Quote(p))
	}
	more := ""
	if n := len(paths) - len(named); n > 0 {
		more = " and " + strconv.Itoa(n) + " more"
	}
	p := git.ShellWord(paths[0])
	return fault.New(fault.Conflict, "cannot %s %q: it brings %s%s, and your checkout has other content there that git does not track",
		target.Verb, target.Branch, strings.Join(named, ", "), more).
		WithHint("git show %s | diff %s - ; then mv %s %s and %s again", git.ShellWord(target.Branch+":"+paths[0]), p, p, git.ShellWord(paths[0]+".mine"), target.Verb)
}

// obstacle is an untracked entry where a merge writes.
type obstacle struct {
	change Change
	at     string // its path: that of the change, or one above
}

// obstacles finds the obstacles to paths that the merge adds. git judges paths in
// its index itself.
func obstacles(ctx context.Context, r *git.Repository, changes []Change) ([]obstacle, error) {
	root, err := os.OpenRoot(r.Top)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open %q", r.Top)
	}
	defer root.Close()
	var found []obstacle
	var ask []string
	for _, c := range changes {
		if c.NewMode == 0 || c.OldMode != 0 || c.NewMode == git.ModeGitlink {
			continue
		}
		at, ok := firstObstacle(root, c.Path)
		if !ok {
			continue
		}
		found = append(found, obstacle{c, at})
		ask = append(ask, at)
	}
	if len(found) == 0 {
		return nil, nil
	}
	tracked, err := tracked(ctx, r, ask)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(o obstacle) bool { return tracked[o.at] }), nil
}

// firstObstacle walks down to a path and gives the first thing that git would
// have to replace.
func firstObstacle(root *os.Root, name string) (string, bool) {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := path.Join(parts[:i+1]...)
		info, err := root.Lstat(at)
		if err != nil {
			return "", false
		}
		if i == len(parts)-1 {
			if info.IsDir() { // git removes an empty one
				names, err := fs.ReadDir(root.FS(), at)
				return at, err != nil || len(names) > 0
			}
			return at, true
		}
		if !info.IsDir() {
			return at, true
		}
	}
	return "", false
}

// tracked picks the paths that the index has, or has something below.
func tracked(ctx context.Context, r *git.Repository, paths []string) (map[string]bool, error) {
	found := map[string]bool{}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	for batch := range slices.Chunk(paths, 500) {
		c := r.InCheckout(append([]string{"--literal-pathspecs", "ls-files", "--cached", "-z", "--"}, batch...)...)
		out, err := c.Output(ctx)
		if err != nil {
			return nil, fault.Wrap("", err, "cannot see what git tracks")
		}
		for name := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
			for at := string(name); at != "." && at != ""; at = path.Dir(at) {
				found[at] = true
			}
		}
	}
	return found, nil
}
