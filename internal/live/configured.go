package live

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// configured are the paths in a checkout that its git configuration names:
// included files, the hooks, and programs of filters, editors and the like. A
// value that only looks like a path is protected needlessly.
func configured(dir *os.Root, top string, r Repository) ([]string, error) {
	var found []string
	add := func(base, value string, must bool) error {
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if !must {
			value, _, _ = strings.Cut(strings.TrimLeft(value, "!"), " ")
			value = strings.Trim(value, `"'`)
		}
		if value == "" {
			return nil
		}
		if !filepath.IsAbs(value) {
			value = filepath.Join(base, value)
		}
		name, err := filepath.Rel(top, value)
		if err != nil || name == "." || name == ".." || strings.HasPrefix(name, "../") || name == ".git" || strings.HasPrefix(name, ".git/") {
			return nil
		}
		switch _, err := dir.Lstat(name); {
		case err == nil:
			found = append(found, name)
		case must && errors.Is(err, fs.ErrNotExist):
			return fault.New(fault.Conflict, "cannot make an environment of %q: git's configuration names %s, which is missing and could be made inside", top, name).
				WithHint("mkdir %s, or take it out of the configuration", filepath.Join(top, name))
		}
		return nil
	}
	if err := add(top, r.HooksPath, true); err != nil {
		return nil, err
	}
	common, err := hostile.Root(r.CommonDir, ".")
	if err != nil {
		return nil, cannot(err)
	}
	defer common.Close()
	for _, file := range []string{"config", "config.worktree"} {
		data, err := readFile(common, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, cannot(err)
		}
		for line := range strings.Lines(string(data)) {
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				continue
			}
			// Included files are relative to the file that includes them (git-config(1)).
			include := strings.EqualFold(strings.TrimSpace(key), "path")
			if err := errors.Join(add(top, value, false), add(r.CommonDir, value, include)); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}
