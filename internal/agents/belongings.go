package agents

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/patch"
	"github.com/litterbox-sandbox/litterbox/internal/profile"
)

// Bounds of what is copied from the human's own settings.
const (
	largestBelonging = 1 << 20
	mostBelongings   = 500
	allBelongings    = 8 << 20
)

// Brought is the part of the human's own settings that a client inside gets. Paths
// are below HOME inside.
type Brought struct {
	Files    []BroughtFile
	Settings map[string]map[string]any // the content of settings files, in JSON's types
	Notes    []string                  // what stays outside although it was requested, and why
}

// BroughtFile is a file that goes in unchanged.
type BroughtFile struct {
	Path    string
	Content []byte
	Program bool
}

// Bring reads the human's belongings; with programs also those that run programs.
// Missing ones are left out; unreadable and oversized ones are noted.
func (h Host) Bring(belongings []profile.Belonging, programs bool) Brought {
	b := bringing{Brought: Brought{Settings: map[string]map[string]any{}}, room: allBelongings}
	for _, one := range belongings {
		path := h.pathOf(one)
		switch {
		case one.Runs && !programs || path == "":
		case len(one.Keys) > 0:
			b.settings(one, path)
		default:
			b.tree(one.Path, path)
		}
	}
	return b.Brought
}

// pathOf is where something is on the host; empty without a HOME.
func (h Host) pathOf(one profile.Belonging) string {
	if moved := h.Env(one.Moved); one.Moved != "" && filepath.IsAbs(moved) {
		return filepath.Join(moved, filepath.Join(strings.Split(one.Path, "/")[one.Levels:]...))
	}
	if h.Home == "" {
		return ""
	}
	return h.home(filepath.FromSlash(one.Path))
}

type bringing struct {
	Brought
	room int
}

// leave notes that something stays outside.
func (b *bringing) leave(path string, why error) {
	b.Notes = append(b.Notes, "~/"+path+" stays outside: "+why.Error())
}

// readOwn reads a file of the human's, who may keep it elsewhere and link to it.
// It gives nil where there is none.
func readOwn(path string) ([]byte, fs.FileMode, error) {
	// O_NONBLOCK: opening a named pipe would wait for a writer for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, bare(err)
	}
	defer file.Close() // read only
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, 0, bare(err)
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("it is not a regular file")
	}
	content, err := io.ReadAll(io.LimitReader(file, largest+1))
	if err == nil && len(content) > largest {
		err = errors.New("it is too large")
	}
	return content, info.Mode(), err
}

// tree takes a file or a directory as it is.
func (b *bringing) tree(path, from string) {
	info, err := os.Stat(from)
	if err != nil || !info.IsDir() {
		b.file(path, from)
		return
	}
	if real, err := filepath.EvalSymlinks(from); err == nil {
		from = real
	}
	err = filepath.WalkDir(from, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		case len(b.Files) >= mostBelongings:
			return fault.New(fault.Invalid, "it holds more than %d files", mostBelongings)
		}
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() {
			b.file(path+"/"+filepath.ToSlash(below), at)
		}
		return nil
	})
	if err != nil {
		b.leave(path, bare(err))
	}
}

// file takes a file as it is, but for the rules of litterbox itself: they are
// for a client outside.
func (b *bringing) file(path, from string) {
	content, mode, err := readOwn(from)
	if err == nil && len(content) > min(largestBelonging, b.room) {
		err = errors.New("it is too large")
	}
	if err != nil {
		b.leave(path, err)
		return
	}
	if splices, err := removeRules(content); err == nil && len(splices) > 0 {
		if content, err = patch.Apply(content, splices); err != nil {
			b.leave(path, err)
			return
		}
	}
	if len(content) == 0 {
		return
	}
	b.room -= len(content)
	b.Files = append(b.Files, BroughtFile{Path: path, Content: content, Program: mode&0o100 != 0})
}

// settings takes the named values of a settings file.
func (b *bringing) settings(one profile.Belonging, from string) {
	content, _, err := readOwn(from)
	if err != nil {
		b.leave(one.Path, err)
		return
	}
	format := patch.JSON
	if strings.HasSuffix(one.Path, ".toml") {
		format = patch.TOML
	}
	document, err := patch.Open(format, content)
	if err != nil {
		b.leave(one.Path, err)
		return
	}
	there := func(path []string) bool { _, there := document.Get(path...); return there }
	if slices.ContainsFunc(one.Unless, there) {
		return
	}
	for _, path := range one.Keys {
		value, there := document.Get(path...)
		if value = without(value, one.Without); !there || empty(value) {
			continue
		}
		if b.Settings[one.Path] == nil {
			b.Settings[one.Path] = map[string]any{}
		}
		object := b.Settings[one.Path]
		for _, name := range path[:len(path)-1] {
			below, ok := object[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				object[name] = below
			}
			object = below
		}
		object[path[len(path)-1]] = value
	}
}

// without takes members out of a value, at any depth.
func without(value any, names []string) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, member := range maps.All(value) {
			if !slices.Contains(names, name) {
				kept[name] = without(member, names)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, member := range value {
			kept[i] = without(member, names)
		}
		return kept
	}
	return value
}

func empty(value any) bool {
	object, ok := value.(map[string]any)
	return value == nil || ok && len(object) == 0
}
