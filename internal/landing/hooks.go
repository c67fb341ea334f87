package landing

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

func namedByConfig(ctx context.Context, r *git.Repository, changes []Change) ([]Risk, error) {
	return nil, nil
}

// HooksAtRisk tells whether changes touch what the user's git would run or
// read at once during a merge: the effective hooks directory, or a
// configuration file that is included from the work tree. (Seen: with
// core.hooksPath=.husky, a branch that adds .husky/post-merge had it executed
// by the very merge that brought it.)
func HooksAtRisk(ctx context.Context, r *git.Repository, changes []Change) (bool, string, error) {
	c := r.InCheckout("rev-parse", "--path-format=absolute", "--git-path", "hooks")
	c.Plain = true // core.hooksPath must be the user's, not ours
	c.Env = append(c.Env, "LC_ALL=C", "GIT_DIR="+r.GitDir)
	hooks, err := c.Line(ctx)
	if err != nil {
		return false, "", fault.Wrap("", err, "cannot tell where git's hooks are")
	}
	if p := touches(r.Top, hooks, changes); p != "" {
		return true, "the merge changes " + strconv.Quote(p) + " in the hooks directory that git uses", nil
	}
	files, err := configFiles(ctx, r)
	if err != nil {
		return false, "", err
	}
	for _, file := range files {
		if p := touches(r.Top, file, changes); p != "" {
			return true, "the merge changes the git configuration file " + strconv.Quote(p), nil
		}
	}
	return false, "", nil
}

// configFiles lists the files that git reads its configuration from, and those
// it would read if they existed: protection goes by name, not by presence.
func configFiles(ctx context.Context, r *git.Repository) ([]string, error) {
	out, err := r.InCheckout("config", "--list", "--show-origin", "-z").Output(ctx)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot tell which configuration files git reads")
	}
	var files []string
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		origin, ok := strings.CutPrefix(fields[i], "file:")
		if !ok { // our own -c
			continue
		}
		if !filepath.IsAbs(origin) {
			origin = filepath.Join(r.Top, origin)
		}
		if !slices.Contains(files, origin) {
			files = append(files, origin)
		}
		key, value, _ := strings.Cut(fields[i+1], "\n")
		if !strings.HasPrefix(key, "include") || !strings.HasSuffix(key, ".path") {
			continue
		}
		// git-config(1), "Includes": relative to the file that includes.
		switch {
		case strings.HasPrefix(value, "~/"):
			value = filepath.Join(os.Getenv("HOME"), value[2:])
		case !filepath.IsAbs(value):
			value = filepath.Join(filepath.Dir(origin), value)
		}
		files = append(files, value)
	}
	return files, nil
}

// touches gives the first change at or below target, or at a directory or link
// that leads to it; "" when target is outside of the work tree. Both the path
// as written and where it leads to count.
func touches(top, target string, changes []Change) string {
	targets := []string{filepath.Clean(target)}
	if resolved, err := filepath.EvalSymlinks(target); err == nil {
		targets = append(targets, resolved)
	}
	for _, t := range targets {
		rel, err := filepath.Rel(top, t)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		rel = strings.ToLower(rel)
		for _, c := range changes {
			p := strings.ToLower(c.Path)
			if rel == "." || p == rel || strings.HasPrefix(p, rel+"/") || strings.HasPrefix(rel, p+"/") {
				if rel == ".git" || strings.HasPrefix(rel, ".git/") {
					continue // no change can be in there
				}
				return c.Path
			}
		}
	}
	return ""
}
