// Package packagecache is the table of package managers' caches that can serve
// inside a sandbox as read-only lower layers, so that a build finds what the
// host has downloaded. It is data and looks at no file.
//
// To add one: a line in the table, after making sure that no credential lies
// below it (npm's .npmrc, cargo's credentials.toml and maven's settings.xml
// lie beside their caches, and so stay out).
package packagecache

import (
	"path/filepath"
	"slices"
	"strings"
)

// Cache is one package manager's cache.
type Cache struct {
	Name      string
	variables []variable // where the package manager looks, the first that is set counts
	below     string     // of HOME, when none is
	// Hidden are paths below the cache that stay out: Go keeps clones of
	// repositories under the address that they came from, user and token
	// included.
	Hidden []string
}

type variable struct{ name, below string }

// table is every cache.
func table() []Cache {
	return []Cache{
		{"go", []variable{{"GOMODCACHE", ""}, {"GOPATH", "pkg/mod"}}, "go/pkg/mod", []string{"cache/vcs"}},
		{"npm", []variable{{"npm_config_cache", "_cacache"}, {"NPM_CONFIG_CACHE", "_cacache"}}, ".npm/_cacache", nil},
		{"pip", []variable{{"PIP_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "pip"}}, ".cache/pip", nil},
		{"cargo", []variable{{"CARGO_HOME", "registry"}}, ".cargo/registry", nil},
		{"maven", nil, ".m2/repository", nil},
	}
}

// Names lists every cache.
func Names() []string {
	var names []string
	for _, c := range table() {
		names = append(names, c.Name)
	}
	return names
}

// Chosen gives the caches of the given names; nil means all.
func Chosen(names []string) []Cache {
	return slices.DeleteFunc(table(), func(c Cache) bool { return names != nil && !slices.Contains(names, c.Name) })
}

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
