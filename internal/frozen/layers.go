package frozen

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// The directories that a sandbox writes, by their names in its own directory and
// in a layer. Its /tmp is scratch.
const (
	Upper  = "upper" // the workspace
	Home   = "home"
	caches = "caches" // one below it for each package cache
	// Below is a golden's part of the workspace. It lies below the base's
	// layers, so that files that the base tracks always show.
	Below = "below"
	// systemPrefix is the prefix of system directories among the names of
	// package caches: they are layers of the same kind, and freeze alike.
	systemPrefix = "system-"
)

// SystemPart returns the name, among those of package caches, of a top-level
// directory with packages that were installed above a foundation; for "" it is
// the root of an image. Layers above different foundations never meet.
func SystemPart(foundation, dir string) string {
	return systemPrefix + filepath.Base(foundation) + "-" + cmp.Or(dir, "root")
}

// SystemUpper returns the directory where a place that installs packages writes
// those of a SystemPart, below its own directory.
func SystemUpper(dir, foundation, name string) string {
	return filepath.Join(dir, caches, SystemPart(foundation, name), Upper)
}

// IsSystem reports whether name is a SystemPart, and no package cache.
func IsSystem(name string) bool { return strings.HasPrefix(name, systemPrefix) }

// System returns the layers of a top-level directory, topmost first.
func (l Layers) System(foundation, dir string) []string {
	return l.Caches[SystemPart(foundation, dir)]
}

// Foundation returns the name of the foundation of the packages in the layers;
// "" means none. It is "." for those of an image.
func (l Layers) Foundation() string {
	for name := range l.Caches {
		if rest, ok := strings.CutPrefix(name, systemPrefix); ok {
			foundation, _, _ := strings.Cut(rest, "-")
			return foundation
		}
	}
	return ""
}

// Layers are the directories of a stack that lie below what a sandbox writes.
type Layers struct {
	Upper  []string // topmost first
	Home   []string
	Caches map[string][]string // by name
	Below  []string            // lie below the base, see [Below]
}

// LayersOf returns the directories of the layers of a stack.
func LayersOf(dir string, stack []string) Layers {
	l := Layers{Caches: map[string][]string{}}
	for _, name := range stack {
		layer := filepath.Join(Store(dir), name)
		if at := filepath.Join(layer, Upper); exists(at) {
			l.Upper = append(l.Upper, at)
		}
		if at := filepath.Join(layer, Home); exists(at) {
			l.Home = append(l.Home, at)
		}
		if at := filepath.Join(layer, Below); exists(at) {
			l.Below = append(l.Below, at)
		}
		names, _ := os.ReadDir(filepath.Join(layer, caches)) // most have none
		for _, entry := range names {
			l.Caches[entry.Name()] = append(l.Caches[entry.Name()], filepath.Join(layer, caches, entry.Name()))
		}
	}
	return l
}

// Split separates the layers of a workspace in the store from the others,
// which come after them.
func Split(dir string, layers []string) (ours, base []string) {
	store := Store(dir) + "/"
	for n, layer := range layers {
		if !strings.HasPrefix(layer, store) {
			return layers[:n], layers[n:]
		}
	}
	return layers, nil
}

// IsGolden reports whether a layer is that of a golden.
func IsGolden(layer string) bool { return exists(filepath.Join(layer, Below)) }
