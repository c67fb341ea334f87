package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// toolchains are directories below HOME that hold programs and nothing
// secret; each is mounted read-only at its own path when $PATH leads into
// the given directory below it.
//
// To add one: a line here, after making sure that no credential lies below what
// is mounted (cargo keeps credentials.toml beside its bin, so only bin is).
var toolchains = []struct {
	name   string
	lead   string   // a $PATH entry below HOME begins with this
	mounts []string // what is mounted, below HOME
}{
	{"nvm", ".nvm/versions", []string{".nvm/versions", ".nvm/alias", ".nvm/nvm.sh"}},
	{"fnm", ".local/share/fnm", []string{".local/share/fnm"}},
	{"volta", ".volta/bin", []string{".volta/bin", ".volta/tools"}},
	{"pyenv", ".pyenv", []string{".pyenv"}},
	{"rbenv", ".rbenv", []string{".rbenv"}},
	{"rustup and cargo", ".cargo/bin", []string{".cargo/bin", ".cargo/env", ".rustup/toolchains", ".rustup/settings.toml"}},
	{"go", "go/bin", []string{"go/bin"}},
	{"go sdk", "sdk/go", []string{"sdk"}},
	{"local go", ".local/go/bin", []string{".local/go"}},
	{"mise", ".local/share/mise", []string{".local/share/mise/installs", ".local/share/mise/shims", ".local/bin/mise"}},
	{"asdf", ".asdf", []string{".asdf/bin", ".asdf/shims", ".asdf/installs", ".asdf/plugins", ".asdf/lib", ".asdf/asdf.sh"}},
	{"deno", ".deno/bin", []string{".deno/bin"}},
	{"bun", ".bun/bin", []string{".bun/bin"}},
	{"pnpm", ".local/share/pnpm", []string{".local/share/pnpm"}},
	{"uv", ".local/share/uv", []string{".local/share/uv/python", ".local/share/uv/tools"}},
	{"sdkman", ".sdkman/candidates", []string{".sdkman/candidates"}},
	{"miniconda", "miniconda3", []string{"miniconda3"}},
	{"juliaup", ".juliaup/bin", []string{".juliaup", ".julia/juliaup"}},
	{"ghcup", ".ghcup/bin", []string{".ghcup/bin", ".ghcup/ghc"}},
	{"opam", ".opam", []string{".opam"}},
	{"npm", ".npm-global/bin", []string{".npm-global/bin", ".npm-global/lib"}},
	{"npm", ".npm-packages/bin", []string{".npm-packages/bin", ".npm-packages/lib"}},
	{"opencode", ".opencode/bin", []string{".opencode/bin"}},
	{"user programs", ".local/bin", []string{".local/bin"}},
	{"user programs", "bin", []string{"bin"}},
}

// clientDirs are where installers of agents' clients put a program without
// changing $PATH for every shell: Claude Code's own is behind an alias, and
// OpenCode's line is in a file that only interactive shells read. They are
// mounted, and searched last, whatever $PATH says.
var clientDirs = []string{".claude/local", ".opencode/bin"}

// mounts lists the host directories that this sandbox sees: toolchains under HOME,
// then those that the configuration names. Only existing ones are listed.
func (e *Engine) mounts(p *place, caller *caller.Caller, homeInside, search string) []Mount {
	var found []Mount
	add := func(path, why string) {
		real, err := os.Stat(path)
		if err != nil || !real.IsDir() && !real.Mode().IsRegular() {
			return
		}
		if slices.ContainsFunc(found, func(m Mount) bool { return m.Path == path || strings.HasPrefix(path, m.Path+"/") }) {
			return
		}
		found = append(found, Mount{Path: path, Why: why})
	}
	// An image's programs are its own, and the host's need not run on its libraries.
	if home := caller.Home; home != "" && homeInside == home && p.record.Image == nil {
		for _, chain := range toolchains {
			if !searched(search, filepath.Join(home, chain.lead)) {
				continue
			}
			for _, dir := range chain.mounts {
				add(filepath.Join(home, dir), "toolchain: "+chain.name)
			}
			if chain.name == "user programs" {
				for _, target := range linkTargets(filepath.Join(home, chain.lead), home) {
					add(target, "toolchain: target of a link in "+chain.lead)
				}
			}
		}
		for _, dir := range clientDirs {
			add(filepath.Join(home, dir), "agent's client")
		}
	}
	for _, path := range ofHome(p.config.Mounts.ReadOnly, caller.Home) {
		add(path, "mounts.read-only")
	}
	found = append(found, e.shares(p, caller, found)...)
	// A mount above the workspace, or in it, would cover it or be covered.
	return slices.DeleteFunc(found, func(m Mount) bool {
		return within(p.record.Repository, m.Path) || within(m.Path, p.record.Repository)
	})
}

// ofHome puts the home directory in the place of ~.
func ofHome(paths []string, home string) []string {
	var found []string
	for _, path := range paths {
		if below, ok := strings.CutPrefix(path, "~/"); ok {
			if home == "" {
				continue // "~" means nothing then
			}
			path = filepath.Join(home, below)
		}
		found = append(found, path)
	}
	return found
}

func searched(search, lead string) bool {
	for _, entry := range filepath.SplitList(search) {
		if within(filepath.Clean(entry), lead) {
			return true
		}
	}
	return false
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// installPlaces hold a directory for each program that an installer puts below
// HOME. Codex's is beside its login: only what is below packages is a program.
var installPlaces = []string{".local/share", ".local/lib", ".local/opt", ".local/pipx", ".codex/packages"}

// linkTargets are the files below home that links in dir lead to: installers
// put a program in a directory of its own and a link into ~/.local/bin. Only
// the program's own directory is given, and only below installPlaces.
func linkTargets(dir, home string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var targets []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue
		}
		for _, place := range installPlaces {
			if rest, ok := strings.CutPrefix(target, filepath.Join(home, place)+"/"); ok {
				first, _, _ := strings.Cut(rest, "/")
				targets = append(targets, filepath.Join(home, place, first))
			}
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// systemSearch is the default PATH.
var systemSearch = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// searchInside is PATH as it is inside: the user's own entries that exist
// there, in order, and the system's at the end.
func searchInside(search string, spec driver.Spec) string {
	var entries []string
	keep := func(entry string) {
		if !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	for _, entry := range filepath.SplitList(search) {
		if !filepath.IsAbs(entry) {
			continue
		}
		entry = filepath.Clean(entry)
		known := within(entry, spec.Workspace.Path)
		for _, dir := range []string{"/usr", "/opt", "/bin", "/sbin", "/nix", "/gnu"} {
			known = known || within(entry, dir)
		}
		for _, mount := range spec.Mounts {
			known = known || within(entry, mount.Target)
		}
		if known {
			keep(entry)
		}
	}
	keep(filepath.Join(spec.Home, ".local/bin"))
	for _, mount := range spec.Mounts {
		if below, ok := strings.CutPrefix(mount.Target, spec.Home+"/"); ok && slices.Contains(clientDirs, below) {
			keep(mount.Target)
		}
	}
	for _, entry := range systemSearch {
		keep(entry)
	}
	return strings.Join(entries, ":")
}
