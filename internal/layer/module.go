package layer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// module is one submodule of a base.
type module struct {
	sandbox.Module
	url  string          // as git inside should know it
	repo *git.Repository // the host's objects; nil where it stays empty
}

// At most this many submodules are filled, and nested this deep: a repository
// can name itself as its own submodule.
const (
	maxModules     = 256
	maxModuleDepth = 8
)

// modulesDir is where git keeps the git directories of submodules
// (gitrepository-layout(5)).
const modulesDir = "modules"

// badModuleName says why the name of a submodule, which becomes a directory,
// is refused. git refuses ".." (CVE-2018-11235); this also refuses any name
// that could be read in two ways.
func badModuleName(name string) string {
	switch {
	case name == "" || len(name) > 1024:
		return "it is empty or too long"
	case strings.HasPrefix(name, "-"):
		return "it begins like an option"
	}
	for _, c := range name {
		if c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0) || strings.ContainsRune(`\:*?"<>|`, c) {
			return fmt.Sprintf("it holds the character %q", c)
		}
	}
	if why := git.BadPath(name, git.ModeGitlink); why != "" {
		return why
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.HasSuffix(part, ".lock") {
			return fmt.Sprintf("it holds %q", part)
		}
	}
	return ""
}

// nestedName finds two names where one is a directory of the other: one would
// write into the other's git directory (CVE-2024-32002, git 2.45).
func nestedName(names []string) (string, bool) {
	folded := map[string]bool{}
	for _, name := range names {
		folded[strings.ToLower(name)] = true
	}
	for _, name := range names {
		for dir := path.Dir(strings.ToLower(name)); dir != "."; dir = path.Dir(dir) {
			if folded[dir] {
				return name, true
			}
		}
	}
	return "", false
}

// modules lists the submodules of a tree, nested ones too, and finds the host's
// copies of them. For each that stays empty there is a note that says how to get it.
func modules(ctx context.Context, r *git.Repository, tree, views string) (found []module, notes []string, err error) {
	s := moduleSearch{ctx: ctx, views: views, hosts: []string{r.GitDir}}
	if r.CommonDir != r.GitDir {
		s.hosts = append(s.hosts, r.CommonDir)
	}
	origin, err := r.Command("config", "--get", "remote.origin.url").Line(ctx)
	if err != nil && git.ExitCode(err) < 0 {
		return nil, nil, err
	}
	if err := s.look(r, tree, "", "", withoutSecrets(origin), 0); err != nil {
		return nil, nil, err
	}
	return s.found, s.notes.List(), nil
}

type moduleSearch struct {
	ctx   context.Context
	views string   // directory for the views of the repositories found
	hosts []string // git directories in which modules/ may lie
	found []module
	notes Notes
}

// look adds the submodules of tree, in the repository r. above is the place of
// r in the outermost work tree, inner its git directory, both from the top and
// empty for the top itself.
func (s *moduleSearch) look(r *git.Repository, tree, above, inner, origin string, depth int) error {
	entries, err := gitmodules(s.ctx, r, tree)
	if err != nil {
		s.notes.Add("the submodules of %q stay empty: %v", or(above, "."), err)
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.name)
	}
	if name, nested := nestedName(names); nested {
		s.notes.Add("the submodules of %q stay empty: the name %q lies inside of another one's", or(above, "."), name)
		return nil
	}
	links, err := gitlinks(s.ctx, r, tree, entries)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := git.Join(above, e.path)
		commit, ok := links[e.path]
		if !ok {
			continue // named, but not there; git skips it too
		}
		if why := badModuleName(e.name); why != "" {
			s.notes.Add("the submodule %q stays empty: its name %q is refused: %s", at, e.name, why)
			continue
		}
		if len(s.found) >= maxModules || depth >= maxModuleDepth {
			s.notes.Add("the submodule %q stays empty: there are too many", at)
			return nil
		}
		m := module{url: resolveURL(e.url, origin), Module: sandbox.Module{Path: at, GitDir: path.Join(inner, modulesDir, e.name), Commit: commit}}
		sub, why := s.open(m, r.ObjectFormat)
		if sub == nil {
			s.notes.Add("the submodule %q is empty inside: %s", at, why)
			s.found = append(s.found, m)
			continue
		}
		m.repo, m.Origin = sub, sub.CommonDir
		s.found = append(s.found, m)
		if err := s.look(sub, commit, at, m.GitDir, m.url, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// open finds the host's git directory of a submodule that has its commit.
func (s *moduleSearch) open(m module, format string) (*git.Repository, string) {
	bring := fmt.Sprintf("git submodule update --init --recursive -- %s, then create the sandbox again", git.ShellWord(m.Path))
	for _, host := range s.hosts {
		dir := filepath.Join(host, filepath.FromSlash(m.GitDir))
		if !IsGitDir(dir) {
			continue
		}
		sub, err := OpenModule(s.ctx, dir, format, s.views)
		if err != nil {
			return nil, err.Error()
		}
		kind, err := sub.Command("cat-file", "-t", m.Commit).Line(s.ctx)
		if err != nil || kind != "commit" {
			return nil, fmt.Sprintf("%s has no commit %s (%s)", dir, m.Commit[:12], bring)
		}
		return sub, ""
	}
	return nil, fmt.Sprintf("the host has no content of it in .git/%s (%s)", m.GitDir, bring)
}

// IsGitDir is git's own test (setup.c, is_git_directory), links refused.
func IsGitDir(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// OpenModule returns the repository of a submodule. git never runs on its own
// git directory but on a view of ours that borrows its objects: the work tree
// that its configuration names may be gone, and nothing there may run.
func OpenModule(ctx context.Context, dir, format, views string) (*git.Repository, error) {
	view, err := os.MkdirTemp(views, "module-")
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot look at the submodule %q", dir)
	}
	r := &git.Repository{Location: git.Location{GitDir: view, CommonDir: dir}, ObjectFormat: format, View: view}
	if err := MakeView(r, view, conversion{autoCRLF: "false", eol: "native"}); err != nil {
		return nil, err
	}
	if boundary, err := os.ReadFile(filepath.Join(dir, Shallow)); err == nil {
		if err := os.WriteFile(filepath.Join(view, Shallow), boundary, 0o644); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot look at the submodule %q", dir)
		}
	}
	// The user's own settings, without those of any repository.
	r.Settings = git.ReadSettings(ctx, git.Command{Dir: "/", Env: []string{"GIT_DIR=/nowhere"}})
	return r, nil
}

// gitmodule is one section of a .gitmodules file.
type gitmodule struct{ name, path, url string }

// gitmodules reads the .gitmodules file of a tree, gitmodules(5).
func gitmodules(ctx context.Context, r *git.Repository, tree string) ([]gitmodule, error) {
	content, err := r.Command("cat-file", "blob", tree+":.gitmodules").Output(ctx)
	if err != nil {
		if git.ExitCode(err) >= 0 {
			return nil, nil // there is none
		}
		return nil, err
	}
	return parseGitmodules(ctx, content)
}

// parseGitmodules has git read the file as data, without includes.
func parseGitmodules(ctx context.Context, content []byte) ([]gitmodule, error) {
	if len(content) > git.MaxRules {
		return nil, fault.New(fault.Invalid, ".gitmodules is larger than %d bytes", git.MaxRules)
	}
	c := git.Command{Dir: "/", Private: true, Env: []string{"GIT_DIR=/nowhere"},
		Stdin: strings.NewReader(string(content)), Args: []string{"config", "--file", "-", "--no-includes", "--list", "-z"}}
	out, err := c.Output(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "cannot read .gitmodules")
	}
	var found []gitmodule
	for item := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		key, value, _ := strings.Cut(item, "\n")
		rest, ok := strings.CutPrefix(key, "submodule.")
		dot := strings.LastIndexByte(rest, '.')
		if !ok || dot < 0 {
			continue
		}
		name, key := rest[:dot], rest[dot+1:]
		n := slices.IndexFunc(found, func(e gitmodule) bool { return e.name == name })
		if n < 0 {
			n, found = len(found), append(found, gitmodule{name: name})
		}
		switch key {
		case "path":
			found[n].path = strings.TrimSuffix(value, "/")
		case "url":
			found[n].url = value
		}
	}
	found = slices.DeleteFunc(found, func(e gitmodule) bool { return e.path == "" })
	return found, nil
}

// gitlinks looks up a tree's entries at the paths of its submodules.
func gitlinks(ctx context.Context, r *git.Repository, tree string, entries []gitmodule) (map[string]string, error) {
	links := map[string]string{}
	if len(entries) == 0 {
		return links, nil
	}
	c := r.Command("ls-tree", "-z", "--full-tree", tree, "--")
	c.Env = append(c.Env, "GIT_LITERAL_PATHSPECS=1")
	for n, e := range entries {
		if n == maxModules {
			break
		}
		c.Args = append(c.Args, e.path)
	}
	out, err := c.Output(ctx)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "cannot list the submodules of %s", tree)
	}
	for line := range strings.SplitSeq(string(out), "\x00") {
		about, path, _ := strings.Cut(line, "\t")
		if f := strings.Fields(about); len(f) == 3 && f[0] == "160000" && git.IsOid(f[2]) {
			links[path] = f[2]
		}
	}
	return links, nil
}

// resolveURL makes a URL that is relative to the superproject's absolute, as
// git-submodule(1) says, and removes credentials. Only git inside uses it.
func resolveURL(u, origin string) string {
	if strings.HasPrefix(u, "-") || strings.ContainsAny(u, "\n\x00") {
		return "" // an option of some command (CVE-2018-17456)
	}
	if !strings.HasPrefix(u, "./") && !strings.HasPrefix(u, "../") {
		return withoutSecrets(u)
	}
	if origin == "" {
		return u
	}
	for {
		if rest, ok := strings.CutPrefix(u, "./"); ok {
			u = rest
			continue
		}
		rest, up := strings.CutPrefix(u, "../")
		if !up {
			return strings.TrimSuffix(origin, "/") + "/" + u
		}
		u = rest
		origin = strings.TrimSuffix(origin, "/")
		cut := strings.LastIndexAny(origin, "/:")
		if cut < 0 {
			return u
		}
		if origin[cut] == ':' {
			return origin[:cut+1] + u
		}
		origin = origin[:cut]
	}
}

// withoutSecrets removes user and password from a URL: no secret gets inside.
func withoutSecrets(u string) string {
	if !strings.Contains(u, "://") {
		return u // a path, or host:path as ssh has it: neither holds a password
	}
	parsed, err := url.Parse(u)
	if err != nil {
		return ""
	}
	if _, secret := parsed.User.Password(); secret || parsed.Scheme == "http" || parsed.Scheme == "https" {
		parsed.User = nil
	}
	return parsed.String()
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// modulesConfig returns the lines about a repository's direct submodules for
// its configuration: inner is its own place.
func modulesConfig(list []module, inner string) string {
	var b strings.Builder
	for _, m := range list {
		name, ok := strings.CutPrefix(m.GitDir, path.Join(inner, modulesDir)+"/")
		if !ok || directParent(list, m) != inner {
			continue
		}
		fmt.Fprintf(&b, "[submodule %s]\n\tactive = true\n", quoteSection(name))
		if m.url != "" {
			fmt.Fprintf(&b, "\turl = %s\n", QuoteConfig(m.url))
		}
	}
	return b.String()
}

// directParent returns the git directory of the module that m is nested in, or "".
func directParent(list []module, m module) string {
	parent := ""
	for _, other := range list {
		if strings.HasPrefix(m.Path, other.Path+"/") && len(other.GitDir) > len(parent) {
			parent = other.GitDir
		}
	}
	return parent
}

// quoteSection writes a subsection's name (git-config(1), Syntax).
func quoteSection(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// hasModules reports, by a look at the files, whether a tree can have submodules.
func (t Tree) hasModules() bool {
	for _, dir := range t.Dirs() {
		info, err := os.Lstat(filepath.Join(dir, ".gitmodules"))
		if err == nil {
			return info.Mode().IsRegular()
		}
		if !errors.Is(err, os.ErrNotExist) {
			return false
		}
	}
	return false
}
