package branch

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Change is one path that differs between two commits.
type Change struct {
	Path    string
	OldMode uint32 // 0: added
	NewMode uint32 // 0: deleted
	Status  byte   // A, D, M or T, git-diff-tree(1)
}

// Risk is a changed path that could run code on the host after a merge.
type Risk struct {
	Path string
	Why  string
}

// riskRule says which paths run something, and when. A pattern without a slash
// is a file name at any depth; one that ends in a slash is a directory at any
// depth; any other is a path at any depth. Case does not count: file systems
// differ.
//
// To add a rule: 1. one line here, 2. one line in the table of the test.
type riskRule struct{ pattern, why string }

func riskRules() []riskRule {
	return []riskRule{
		{".githooks/", "git hooks: run by git commands"},
		{".husky/", "git hooks: run by git commands"},
		{".pre-commit-config.yaml", "run by git commit, where pre-commit is installed"},
		{"lefthook.yml", "run by git commands, where lefthook is installed"},
		{".gitattributes", "chooses filters that git runs"},
		{".gitmodules", "tells git what to fetch and where"},
		{".gitconfig", "git configuration, where it is included"},
		{".vscode/", "tasks and settings that the editor runs"},
		{".idea/", "run configurations of the editor"},
		{".devcontainer/", "run by the editor when it opens the project"},
		{".devcontainer.json", "run by the editor when it opens the project"},
		{".zed/", "tasks and settings that the editor runs"},
		{".vim/", "read by the editor"},
		{".exrc", "read by the editor"},
		{".nvim.lua", "read by the editor"},
		{".envrc", "run by direnv when the shell enters the directory"},
		{".env", "read by tools and shells"},
		{".mise.toml", "run by mise when the shell enters the directory"},
		{"mise.toml", "run by mise when the shell enters the directory"},
		{".mise/", "run by mise when the shell enters the directory"},
		{".tool-versions", "chooses the tools that asdf and mise run"},
		{".claude/", "commands and permissions of an agent on the host"},
		{".mcp.json", "programs that an agent on the host starts"},
		{".cursor/", "rules and programs of an agent on the host"},
		{".cursorrules", "instructions to an agent on the host"},
		{".codex/", "configuration of an agent on the host"},
		{".gemini/", "configuration of an agent on the host"},
		{"AGENTS.md", "instructions to an agent on the host"},
		{"CLAUDE.md", "instructions to an agent on the host"},
		{"GEMINI.md", "instructions to an agent on the host"},
		{".github/copilot-instructions.md", "instructions to an agent on the host"},
		{".litterbox.toml", "configuration of litterbox itself"},
		{".npmrc", "chooses registries and scripts of npm"},
		{".yarnrc", "chooses programs of yarn"},
		{".yarnrc.yml", "chooses programs of yarn"},
		{".yarn/releases/", "run instead of yarn"},
		{".pnpmfile.cjs", "run by pnpm install"},
		{"package.json", "scripts that npm runs, some at install"},
		{".cargo/config", "programs that cargo runs"},
		{".cargo/config.toml", "programs that cargo runs"},
		{"build.rs", "run by cargo build"},
		{"Makefile", "run by make"},
		{"GNUmakefile", "run by make"},
		{"*.mk", "run by make"},
		{"CMakeLists.txt", "run by cmake"},
		{"justfile", "run by just"},
		{"Taskfile.yml", "run by task"},
		{"Rakefile", "run by rake"},
		{"setup.py", "run by pip install"},
		{"conftest.py", "run by pytest"},
		{"noxfile.py", "run by nox"},
		{"pyproject.toml", "chooses what pip runs to build"},
		{"*.pth", "run by every start of python"},
		{"sitecustomize.py", "run by every start of python"},
		{"*.gradle", "run by gradle"},
		{"*.gradle.kts", "run by gradle"},
		{"gradlew", "run instead of gradle"},
		{"gradle-wrapper.properties", "chooses the gradle that is downloaded"},
		{"mvnw", "run instead of maven"},
		{".mvn/", "options and extensions of maven"},
		{"pom.xml", "plugins that maven runs"},
		{".github/workflows/", "run by GitHub with the repository's secrets"},
		{".github/actions/", "run by GitHub with the repository's secrets"},
		{".gitlab-ci.yml", "run by GitLab with the repository's secrets"},
		{".circleci/", "run by CircleCI with the repository's secrets"},
		{"Jenkinsfile", "run by Jenkins"},
		{"Dockerfile", "run by docker build"},
		{"Dockerfile.*", "run by docker build"},
		{"Containerfile", "run by podman build"},
		{"docker-compose*.y*ml", "started by docker compose, with any mount"},
		{"compose.y*ml", "started by docker compose, with any mount"},
		{"Vagrantfile", "run by vagrant"},
		{"flake.nix", "run by nix"},
		{"shell.nix", "run by nix-shell"},
		{"default.nix", "run by nix"},
		{".bazelrc", "options of bazel"},
	}
}

func (r riskRule) matches(name string) bool {
	pattern := strings.ToLower(r.pattern)
	if dir, ok := strings.CutSuffix(pattern, "/"); ok {
		return strings.Contains("/"+name, "/"+dir+"/") || name == dir || strings.HasSuffix(name, "/"+dir)
	}
	if strings.Contains(pattern, "/") {
		return name == pattern || strings.HasSuffix(name, "/"+pattern)
	}
	ok, err := path.Match(pattern, path.Base(name))
	return ok && err == nil
}

// Risky names the changes that could run code on the host. Deletions cannot.
func Risky(changes []Change) []Risk {
	rules := riskRules()
	var risks []Risk
	for _, c := range changes {
		if c.NewMode == 0 {
			continue
		}
		name, why := strings.ToLower(c.Path), ""
		for _, r := range rules {
			if r.matches(name) {
				why = r.why
				break
			}
		}
		switch {
		case why != "":
		case c.NewMode == modeExecutable && c.OldMode != modeExecutable:
			why = "a new executable"
		case c.NewMode == modeLink && c.OldMode != modeLink:
			why = "a new symbolic link"
		case c.NewMode == modeGitlink:
			why = "a submodule: git fetches what it names"
		}
		if why != "" {
			risks = append(risks, Risk{Path: c.Path, Why: why})
		}
	}
	return risks
}

// ChangedAgainst lists what a merge of to into from would bring: the changes
// of to since the merge base.
func (r *Repository) ChangedAgainst(ctx context.Context, from, to string) ([]Change, error) {
	if err := checkOids(from, to); err != nil {
		return nil, err
	}
	base, err := r.git("merge-base", from, to).line(ctx)
	if exitCode(err) == 1 {
		base, err = r.emptyTree(), nil // unrelated: everything is new
	}
	if err != nil {
		return nil, fault.Wrap("", err, "cannot find where %s and %s parted", from, to)
	}
	diffs, err := r.diffTrees(ctx, base, to)
	if err != nil {
		return nil, fault.Wrap("", err, "cannot list what changed")
	}
	changes := make([]Change, 0, len(diffs))
	for _, d := range diffs {
		changes = append(changes, Change{Path: d.path, OldMode: d.oldMode, NewMode: d.newMode, Status: d.status})
	}
	return changes, nil
}

// HooksAtRisk tells whether changes touch what the user's git would run or
// read at once during a merge: the effective hooks directory, or a
// configuration file that is included from the work tree. (Seen: with
// core.hooksPath=.husky, a branch that adds .husky/post-merge had it executed
// by the very merge that brought it.)
func (r *Repository) HooksAtRisk(ctx context.Context, changes []Change) (bool, string, error) {
	c := r.checkout("rev-parse", "--path-format=absolute", "--git-path", "hooks")
	c.plain = true // core.hooksPath must be the user's, not ours
	c.env = append(c.env, "LC_ALL=C", "GIT_DIR="+r.GitDir)
	hooks, err := c.line(ctx)
	if err != nil {
		return false, "", fault.Wrap("", err, "cannot tell where git's hooks are")
	}
	if p := touches(r.Top, hooks, changes); p != "" {
		return true, "the merge changes " + strconv.Quote(p) + " in the hooks directory that git uses", nil
	}
	files, err := r.configFiles(ctx)
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
func (r *Repository) configFiles(ctx context.Context) ([]string, error) {
	out, err := r.checkout("config", "--list", "--show-origin", "-z").output(ctx)
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
