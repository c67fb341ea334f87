package landing

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Limits on reading hooks.
const (
	maxHooks    = 200      // files of a directory
	maxHookText = 64 << 10 // bytes of each
)

// HooksAtRisk reports whether changes touch what git would run or read at once
// during a merge, and why:
//
//   - the effective hooks directory and the directories above it in the work
//     tree, because the hooks in it may be stubs that run what lies beside:
//     husky 9 sets core.hooksPath to .husky/_, whose stubs run .husky/<hook>;
//   - what a hook names, or leads to as a link, wherever the hook is;
//   - what managers of hooks read, or tools that a hook names, where any hook
//     is installed;
//   - a configuration file that git reads.
//
// (Seen: with core.hooksPath=.husky, a branch that adds .husky/post-merge had it
// executed by the very merge that brought it.)
func HooksAtRisk(ctx context.Context, r *git.Repository, changes []Change) (bool, string, error) {
	if len(changes) == 0 {
		return false, "", nil
	}
	c := r.InCheckout("rev-parse", "--path-format=absolute", "--git-path", "hooks")
	c.Plain = true // core.hooksPath must be the user's, not litterbox's
	c.Env = append(c.Env, "LC_ALL=C", "GIT_DIR="+r.GitDir)
	dir, err := c.Line(ctx)
	if err != nil {
		return false, "", fault.Wrap("", err, "cannot tell where git's hooks are")
	}
	for _, at := range withParents(r, dir) {
		if p := touches(r.Top, at, changes); p != "" {
			return true, "the merge changes " + strconv.Quote(p) + " where git's hooks are", nil
		}
	}
	s, err := r.AllSettings(ctx)
	if err != nil {
		return false, "", err
	}
	named := configNames(r, s)
	for _, c := range changes {
		if named[bareName(c.Path)] == "core.fsmonitor" {
			return true, "the merge changes " + strconv.Quote(c.Path) + ", which core.fsmonitor names", nil
		}
	}
	hooks, err := readHooks(dir, s)
	if err != nil {
		return false, "", err
	}
	for _, hook := range hooks {
		if p := hook.touched(r.Top, changes); p != "" {
			return true, "the merge changes " + strconv.Quote(p) + ", which the hook " + strconv.Quote(hook.name) + " leads to", nil
		}
	}
	if p := managed(hooks, changes); p != "" {
		return true, "the merge changes " + strconv.Quote(p) + ", which hooks read", nil
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

// withParents gives a directory and those above it in the work tree, except the
// work tree itself; both as written and as resolved.
func withParents(r *git.Repository, dir string) []string {
	var all []string
	starts := []string{filepath.Clean(dir)}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		starts = append(starts, resolved)
	}
	for _, at := range starts {
		all = append(all, at)
		for {
			at = filepath.Dir(at)
			rel, err := filepath.Rel(r.Top, at)
			if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") || rel == ".git" || strings.HasPrefix(rel, ".git/") {
				break
			}
			all = append(all, at)
		}
	}
	return all
}

// hook is a program that runs at an event of git: a file of the hooks directory,
// or a command of the configuration of a newer git.
type hook struct {
	name string
	path string // "" for a command
	text string // folded
}

// readHooks reads the hooks that are installed. Files that cannot run count
// too: others may source them.
func readHooks(dir string, s *git.Settings) ([]hook, error) {
	var hooks []hook
	for key, value := range s.Values {
		if name, ok := strings.CutSuffix(key, ".command"); ok && strings.HasPrefix(name, "hook.") {
			hooks = append(hooks, hook{name: name, text: foldName(value)})
		}
	}
	found, err := os.ReadDir(dir)
	// core.hooksPath=/dev/null is a usual way to have no hooks.
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read the hooks in %q", dir)
	}
	for _, entry := range found[:min(maxHooks, len(found))] {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if err != nil || strings.HasSuffix(entry.Name(), ".sample") || !info.Mode().IsRegular() {
			if entry.Type()&fs.ModeSymlink == 0 {
				continue
			}
			hooks = append(hooks, hook{name: entry.Name(), path: path}) // a link that may lead to a file that the merge brings
			continue
		}
		text, err := readUpTo(path, maxHookText)
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot read the hook %q", path)
		}
		hooks = append(hooks, hook{name: entry.Name(), path: path, text: foldName(text)})
	}
	slices.SortFunc(hooks, func(a, b hook) int { return strings.Compare(a.name, b.name) })
	return hooks, nil
}

func readUpTo(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	return string(text), err
}

// touched gives a change that the hook runs or reads: the target of its link, and
// anything in a directory that it names.
func (h hook) touched(top string, changes []Change) string {
	if h.path != "" {
		target := h.path
		if to, err := os.Readlink(h.path); err == nil { // it need not exist yet
			target = to
			if !filepath.IsAbs(to) {
				target = filepath.Join(filepath.Dir(h.path), to)
			}
		}
		if p := touches(top, target, changes); p != "" {
			return p
		}
	}
	for _, c := range changes {
		name := foldName(c.Path)
		first, _, below := strings.Cut(name, "/")
		if strings.Contains(h.text, name) && (below || hasWord(h.text, name)) || below && strings.Contains(h.text, first+"/") {
			return c.Path
		}
	}
	return ""
}

// managed gives a change to a file that managers of hooks read, or a tool that
// one of the hooks names.
func managed(hooks []hook, changes []Change) string {
	if len(hooks) == 0 {
		return ""
	}
	m := newMatcher(riskRules())
	for _, c := range changes {
		for _, rule := range m.find(c.Path) {
			if rule.hooks {
				return c.Path
			}
			for _, word := range rule.words() {
				if slices.ContainsFunc(hooks, func(h hook) bool { return hasWord(h.text, word) }) && rule.look != lookGo && rule.look != lookPlugins {
					return c.Path
				}
			}
		}
	}
	return ""
}

// words are the programs that read the files of a rule, as a hook would call
// them.
func (r riskRule) words() []string {
	words := strings.Fields(r.calls)
	for word := range strings.FieldsFuncSeq(strings.ToLower(r.tool), func(c rune) bool { return c == ' ' || c == ',' }) {
		switch word {
		case "and", "other", "others", "several", "git", "hooks", "tools", "tool", "files", "lock", "file", "version", "control", "tests", "test", "languages":
		default:
			words = append(words, word)
		}
	}
	return words
}

// hasWord reports whether text has the word on its own.
func hasWord(text, word string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		i += at
		end := i + len(word)
		if (i == 0 || !inWord(text[i-1])) && (end == len(text) || !inWord(text[end])) {
			return true
		}
		at = i + 1
	}
}

func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// namedByConfig finds changed files that the human's own git configuration
// names as a program, a filter or another configuration: git runs or reads them
// where it needs them, in this merge too.
func namedByConfig(ctx context.Context, r *git.Repository, changes []Change) ([]Risk, error) {
	s, err := r.AllSettings(ctx)
	if err != nil {
		return nil, err
	}
	named := configNames(r, s)
	var risks []Risk
	for _, c := range changes {
		if key := named[bareName(c.Path)]; key != "" && c.NewMode != 0 {
			risks = append(risks, Risk{Path: c.Path, Class: Git, Reason: "your git configuration names it: " + git.Printable(key), change: c})
		}
	}
	return risks, nil
}

// configNames maps the files that the configuration names to the first key that
// does.
func configNames(r *git.Repository, s *git.Settings) map[string]string {
	named := map[string]string{}
	for key, value := range s.Values {
		if !namesProgram(key) {
			continue
		}
		for _, token := range strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t\n\"'`;|&(){}$=<>!", c) }) {
			if rel, err := filepath.Rel(r.Top, token); err == nil && filepath.IsAbs(token) && rel != ".." && !strings.HasPrefix(rel, "../") {
				token = rel
			}
			token = bareName(filepath.Clean(token))
			if before, ok := named[token]; !ok || key < before {
				named[token] = key
			}
		}
	}
	return named
}

// bareName is a folded path without the prefix that commands put before it.
func bareName(name string) string { return strings.TrimLeft(foldName(name), "./") }

// namesProgram reports whether values of a configuration key are commands or
// files that git obeys (git-config(1)).
func namesProgram(key string) bool {
	section, _, _ := strings.Cut(key, ".")
	switch section {
	case "alias", "pager", "include", "includeif":
		return true
	}
	switch key[strings.LastIndexByte(key, '.')+1:] {
	case "fsmonitor", "editor", "pager", "sshcommand", "askpass", "gitproxy", "attributesfile", "alternaterefscommand",
		"command", "cmd", "clean", "smudge", "process", "driver", "textconv", "external", "program", "helper", "difffilter",
		"packobjectshook", "browser", "uploadpack", "receivepack", "update", "path":
		return true
	}
	return false
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
		if !ok { // litterbox's own -c
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
			value = filepath.Join(caller.Of(ctx).Get("HOME"), value[2:])
		case !filepath.IsAbs(value):
			value = filepath.Join(filepath.Dir(origin), value)
		}
		files = append(files, value)
	}
	return files, nil
}

// touches gives the first change at or below target, or at a directory or link
// that leads to it; "" when target is outside of the work tree. Both the path as
// written and as resolved count.
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
