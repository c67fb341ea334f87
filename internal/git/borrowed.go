package git

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxBorrowed is how deep git follows stores that borrow from others
// (object-file.c, link_alt_odb_entry).
const maxBorrowed = 5

// checkBorrowed refuses a repository that borrows objects from a store of another
// user (gitrepository-layout(5), objects/info/alternates). That user decides what
// an object's name means, can change it between two looks, and can put a pipe in
// its place, at which git waits for ever. Git itself looks at the owner of a
// repository only. As there, safe.directory names exceptions.
func checkBorrowed(ctx context.Context, commonDir string) error {
	trusted := []int{0, os.Geteuid()}
	if uid, err := ownerOf(commonDir); err == nil { // git has judged it, or will
		trusted = append(trusted, uid)
	}
	for _, one := range foreignStores(filepath.Join(commonDir, "objects"), trusted, 0) {
		if safe, err := safeDirectory(ctx, one.path); err != nil {
			return err
		} else if !safe {
			return fault.New(fault.Denied, "cannot use the repository at %q: it borrows objects from %q, which belongs to uid %d", commonDir, one.path, one.uid).
				WithHint("git config --global --add safe.directory %s", one.path)
		}
	}
	return nil
}

// store is a directory of objects.
type store struct {
	path string
	uid  int
}

// foreignStores lists the stores that objects borrows from, directly or not, and
// that belong to none of the trusted users. What those borrow in turn is theirs.
func foreignStores(objects string, trusted []int, depth int) []store {
	list, err := os.ReadFile(filepath.Join(objects, "info", "alternates"))
	if err != nil || depth > maxBorrowed {
		return nil // as a rule there is none
	}
	var found []store
	for line := range bytes.Lines(list) {
		path := string(bytes.TrimRight(line, "\n"))
		if quoted, err := strconv.Unquote(path); err == nil && strings.HasPrefix(path, `"`) {
			path = quoted // C's escapes, of which git writes a part
		}
		if path == "" || path[0] == '#' {
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(objects, path)
		}
		path, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		uid := -1 // unless it can be looked at
		if err == nil {
			uid, err = ownerOf(path)
		}
		if err != nil || !slices.Contains(trusted, uid) {
			found = append(found, store{path, uid})
			continue
		}
		found = append(found, foreignStores(path, trusted, depth+1)...)
	}
	return found
}

// safeDirectory reports whether the human's own configuration calls a store, or
// the repository that it belongs to, safe.
func safeDirectory(ctx context.Context, objects string) (bool, error) {
	out, err := Command{Dir: "/", Args: []string{"config", "--null", "--type=path", "--get-all", "safe.directory"}}.Output(ctx)
	if err != nil && ExitCode(err) != 1 { // 1: there is none
		return false, err
	}
	var safe []string
	for value := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if value == "" { // git-config(1): it takes back those before it
			safe = nil
			continue
		}
		safe = append(safe, value)
	}
	for _, value := range safe {
		below, all := strings.CutSuffix(value, "/*")
		if value == "*" || all && strings.HasPrefix(objects, below+"/") {
			return true, nil
		}
		value = strings.TrimSuffix(value, "/")
		if slices.Contains([]string{objects, strings.TrimSuffix(objects, "/objects"), strings.TrimSuffix(objects, "/.git/objects")}, value) {
			return true, nil
		}
	}
	return false, nil
}
