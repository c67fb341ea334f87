// Package packagecache is the table of the host's caches that can serve inside a
// sandbox as read-only lower layers: those of package managers, so that a build
// finds the host's downloads, and those of compilers, so that it finds the
// host's build results. The servers of editors serve in the same way. It is data
// and looks at no file.
//
// A package cache holds what others have published. A build cache holds the results
// of every project of the user, with the output of its tests, so it serves only if
// the user has named it. So does the server of an editor, which is a program that
// runs in every sandbox.
//
// To add one: a line in the table, after making sure that no credential is
// below it (npm's .npmrc, cargo's credentials.toml and maven's settings.xml
// are beside their caches, and so stay out).
package packagecache

import (
	"path/filepath"
	"slices"
	"strings"
)

// Cache is the cache of one program.
type Cache struct {
	Name      string
	variables []variable // where the package manager looks; the first that is set counts
	below     string     // of HOME, if none is
	// Hidden are paths below the cache that stay out, directories with a slash
	// at the end: Go keeps clones of repositories under the address they came
	// from, user and token included.
	Hidden []string
}

type variable struct{ name, below string }

// table returns every package cache.
func table() []Cache {
	return []Cache{
		{"go", []variable{{"GOMODCACHE", ""}, {"GOPATH", "pkg/mod"}}, "go/pkg/mod", []string{"cache/vcs/"}},
		{"npm", []variable{{"npm_config_cache", "_cacache"}, {"NPM_CONFIG_CACHE", "_cacache"}}, ".npm/_cacache", nil},
		{"pip", []variable{{"PIP_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "pip"}}, ".cache/pip", nil},
		{"cargo", []variable{{"CARGO_HOME", "registry"}}, ".cargo/registry", nil},
		{"maven", nil, ".m2/repository", nil},
		{"gradle", []variable{{"GRADLE_USER_HOME", "caches/modules-2"}}, ".gradle/caches/modules-2", nil},
	}
}

// builds returns every build cache. A configuration of ccache can be in its
// cache, with the password of a remote storage.
func builds() []Cache {
	return []Cache{
		{"go-build", []variable{{"GOCACHE", ""}, {"XDG_CACHE_HOME", "go-build"}}, ".cache/go-build", []string{"fuzz/"}},
		{"ccache", []variable{{"CCACHE_DIR", ""}, {"XDG_CACHE_HOME", "ccache"}}, ".cache/ccache", []string{"ccache.conf"}},
		{"sccache", []variable{{"SCCACHE_DIR", ""}, {"XDG_CACHE_HOME", "sccache"}}, ".cache/sccache", nil},
		{"gradle-build", []variable{{"GRADLE_USER_HOME", "caches/build-cache-1"}}, ".gradle/caches/build-cache-1", nil},
	}
}

// editors returns every directory of an editor's servers, as the editor puts them
// into the home of a host that it works on over ssh. What they write is beside
// it: settings, extensions and logins stay out.
func editors() []Cache {
	return []Cache{
		{"vscode", nil, ".vscode-server/cli/servers", nil},
		{"cursor", nil, ".cursor-server/bin", nil},
		{"jetbrains", []variable{{"XDG_CACHE_HOME", "JetBrains/RemoteDev/dist"}}, ".cache/JetBrains/RemoteDev/dist", nil},
		{"zed", nil, ".zed_server", nil},
	}
}

// EditorNames lists every editor whose servers can serve inside.
func EditorNames() []string { return names(editors()) }

// Names lists every package cache.
func Names() []string { return names(table()) }

// BuildNames lists every build cache.
func BuildNames() []string { return names(builds()) }

func names(caches []Cache) []string {
	var all []string
	for _, c := range caches {
		all = append(all, c.Name)
	}
	return all
}

// Chosen returns the package caches of the given names, where nil means all,
// and the build caches and servers of editors of the given names.
func Chosen(packages, built, servers []string) []Cache {
	without := func(caches []Cache, names []string) []Cache {
		return slices.DeleteFunc(caches, func(c Cache) bool { return !slices.Contains(names, c.Name) })
	}
	if packages == nil {
		packages = Names()
	}
	return slices.Concat(without(table(), packages), without(builds(), built), without(editors(), servers))
}

// Built reports whether a cache holds build results rather than downloads.
func (c Cache) Built() bool { return slices.Contains(BuildNames(), c.Name) }

// Locate says where the cache is for programs with this environment; "" when
// the environment names no absolute path.
func (c Cache) Locate(getenv func(string) string, home string) string {
	for _, v := range c.variables {
		value := getenv(v.name)
		if v.name == "GOPATH" {
			value, _, _ = strings.Cut(value, string(filepath.ListSeparator)) // downloads go to the first
		}
		if value == "" {
			continue
		}
		if !filepath.IsAbs(value) {
			return ""
		}
		return filepath.Join(value, v.below)
	}
	return filepath.Join(home, c.below)
}
