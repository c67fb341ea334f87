package frozen

import (
	"os"
	"path/filepath"
	"strings"
)

// The directories that a sandbox writes, by their names in its own directory and
// in a layer. What it has in /tmp is scratch.
const (
	Upper  = "upper" // the workspace
	Home   = "home"
	caches = "caches" // one below it for each package cache
)

// Layers are the directories of a stack that lie below what a sandbox writes.
type Layers struct {
	Upper  []string // topmost first
	Home   []string
	Caches map[string][]string // by name
}

// LayersOf gives the directories of the layers of a stack.
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
		names, _ := os.ReadDir(filepath.Join(layer, caches)) // most have none
		for _, entry := range names {
			l.Caches[entry.Name()] = append(l.Caches[entry.Name()], filepath.Join(layer, caches, entry.Name()))
		}
	}
	return l
}

// Split separates the layers of a workspace that lie in the store from those
// that do not, which come after them.
func Split(dir string, layers []string) (ours, base []string) {
	store := Store(dir) + "/"
	for n, layer := range layers {
		if !strings.HasPrefix(layer, store) {
			return layers[:n], layers[n:]
		}
	}
	return layers, nil
}
