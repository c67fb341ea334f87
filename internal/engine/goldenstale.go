package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/config"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// pinningFiles say which packages a project has, at the top of its repository. A
// golden depends on all of them that are there.
func pinningFiles() []string {
	return []string{
		".node-version", ".nvmrc", ".python-version", ".ruby-version", ".tool-versions", "Cargo.lock", "Gemfile.lock", "Pipfile.lock", "bun.lock", "bun.lockb",
		"composer.lock", "deno.lock", "flake.lock", "go.mod", "go.sum", "go.work.sum", "gradle.lockfile", "mise.toml", "mix.lock", "npm-shrinkwrap.json",
		"package-lock.json", "pdm.lock", "pnpm-lock.yaml", "poetry.lock", "pubspec.lock", "requirements.txt", "rust-toolchain", "rust-toolchain.toml", "uv.lock", "yarn.lock",
	}
}

// Names under which a golden remembers what it was made from.
const (
	fromImage     = "container.base-image"
	fromEnv       = "container.env"
	fromPackages  = "container.packages"
	fromSetUp     = "container.setup-command"
	fromServices  = "container.services"
	fromProvision = "hooks.post_provision"
	fromSync      = "hooks.post_sync"
	fromTools     = "tools"
	fromAgents    = "golden.agents"
)

// madeFrom gives hashes of everything that a golden depends on: parts of the
// configuration, and files of a tree by their paths.
func madeFrom(ctx context.Context, repo *git.Repository, tree string, c config.Config, image *sandbox.Image) (map[string]string, error) {
	found := map[string]string{}
	for name, part := range map[string]any{
		fromEnv: c.Container.Env, fromPackages: c.Container.Packages, fromSetUp: c.Container.SetupCommand, fromServices: c.Container.Services, fromAgents: c.Golden.Agents,
		fromProvision: c.Hooks.PostProvision, fromSync: c.Hooks.PostSync, fromTools: c.Golden.Tools,
	} {
		if reflect.ValueOf(part).Len() == 0 {
			continue
		}
		hash, err := hashOf(part)
		if err != nil {
			return nil, err
		}
		found[name] = hash
	}
	if image != nil {
		hash, err := hashOf([]any{image.Reference, image.Digest, image.Directory})
		if err != nil {
			return nil, err
		}
		found[fromImage] = hash
	}
	files, err := treeFiles(ctx, repo, tree, append(pinningFiles(), c.Golden.Inputs...))
	if err != nil {
		return nil, err
	}
	for path, oid := range files {
		found[path] = oid
	}
	return found, nil
}

func hashOf(part any) (string, error) {
	data, err := json.Marshal(part)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "cannot tell what a golden is made from")
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// treeFiles gives the object ids of those paths that a tree has.
func treeFiles(ctx context.Context, repo *git.Repository, tree string, paths []string) (map[string]string, error) {
	out, err := repo.Command(append([]string{"ls-tree", "-z", "--full-tree", tree, "--"}, paths...)...).Output(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		what, path, ok := strings.Cut(line, "\t")
		if fields := strings.Fields(what); ok && len(fields) == 3 {
			found[path] = fields[2]
		}
	}
	return found, nil
}

// differs lists, sorted, the origins in which two goldens differ.
func differs(before, now map[string]string) []string {
	var names []string
	for name, hash := range now {
		if before[name] != hash {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, has := now[name]; !has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// stale lists the origins of a golden that differ for a sandbox with this base and
// configuration.
func (g *golden) stale(ctx context.Context, repo *git.Repository, tree string, c config.Config, image *sandbox.Image) ([]string, error) {
	now, err := madeFrom(ctx, repo, tree, c, image)
	if err != nil {
		return nil, err
	}
	names := differs(g.MadeFrom, now)
	if g.Repository != repo.Top {
		names = append(names, "the project's path")
	}
	if g.Home != homeInside(callerOf(ctx), repo.Top) {
		names = append(names, "the path of HOME")
	}
	return names, nil
}

// staleNamed is how many things a note about a stale golden names.
const staleNamed = 4

// staleNote says in one line that a golden is stale, and what to type: the update that
// runs only what is stale, where that is enough.
func (g *golden) staleNote(names []string) string {
	more, command := "", g.rebuild()
	if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(syncParts(), name) }) {
		command = "litterbox golden update --sync-only"
		if g.Name != DefaultGolden {
			command += " " + g.Name
		}
	}
	if n := len(names) - staleNamed; n > 0 {
		more, names = ", …", names[:staleNamed]
	}
	return "golden " + g.Name + " is stale (changed: " + strings.Join(names, ", ") + more + "): " + command
}

// rebuild is the command that makes a golden again.
func (g *golden) rebuild() string {
	if g.Name == DefaultGolden {
		return "litterbox build"
	}
	return "litterbox build " + g.Name
}
