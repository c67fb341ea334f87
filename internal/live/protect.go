package live

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/landing"
)

// Protected are the parts of a checkout that stay read-only inside, relative to
// its top.
type Protected struct {
	ReadOnly []string `json:"read_only"`
	Fixed    []string `json:"fixed"` // directories above them, which keep their names
}

// Bounds for looking into a directory at the top.
const (
	deepest     = 3
	mostEntries = 500
	soonest     = 2 // the last rank of landing.Class that runs without being called
)

// Repository is what Protect must know about a checkout's git.
type Repository struct {
	GitDir    string // of this worktree; empty without a repository
	CommonDir string
	Format    string // of the objects
	HooksPath string // core.hooksPath, from any configuration
}

// Protect looks at the top of a checkout for files that run code on the host by
// themselves, or at the next install, build or test, by the table of the merge
// gate, for the repositories of submodules, and for paths in the checkout that
// git's configuration names. It refuses where one is missing: it could be made
// inside.
func Protect(top string, r Repository) (Protected, error) {
	dir, err := hostile.Root(top, ".")
	if err != nil {
		return Protected{}, fault.Wrap(fault.Unavailable, err, "cannot open %q", top)
	}
	defer dir.Close()
	entries, err := list(dir, ".")
	if err != nil {
		return Protected{}, fault.Wrap(fault.Unavailable, err, "cannot list %q", top)
	}
	var p Protected
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case name == ".git":
		case entry.Type().IsRegular() && risky(name, entry):
			p.ReadOnly = append(p.ReadOnly, name)
		case entry.IsDir() && holdsRisks(dir, name):
			p.ReadOnly = append(p.ReadOnly, name)
		}
	}
	var index []byte
	if r.GitDir != "" {
		if index, err = readIndex(r.GitDir); err != nil {
			return Protected{}, err
		}
		named, err := configured(dir, top, r)
		if err != nil {
			return Protected{}, err
		}
		p.protect(named...)
	}
	for _, module := range modules(dir, index, r.Format) {
		dotGit := path.Join(module, ".git")
		if _, err := dir.Lstat(dotGit); err != nil {
			continue
		}
		p.protect(dotGit)
	}
	slices.Sort(p.ReadOnly)
	p.ReadOnly = slices.Compact(p.ReadOnly)
	slices.Sort(p.Fixed) // those above come first
	p.Fixed = slices.Compact(p.Fixed)
	return p, nil
}

// protect adds paths, and fixes the directories above them.
func (p *Protected) protect(paths ...string) {
	for _, name := range paths {
		p.ReadOnly = append(p.ReadOnly, name)
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			p.Fixed = append(p.Fixed, above)
		}
	}
}

// risky asks the merge gate about one path.
func risky(name string, entry fs.DirEntry) bool {
	mode := uint32(git.ModeFile)
	if info, err := entry.Info(); err == nil && info.Mode()&0o111 != 0 {
		mode = git.ModeExecutable
	}
	// Both modes the same: that a file is executable is nothing new.
	found := landing.Risky([]landing.Change{{Path: name, OldMode: mode, NewMode: mode, Status: 'M'}})
	return len(found) > 0 && found[0].Class.Rank() <= soonest
}

// holdsRisks reports whether a directory whose name begins with a dot, as those
// of editors and hook managers do, holds such a file. It is protected whole: most
// tools read new files there too.
func holdsRisks(dir *os.Root, name string) bool {
	if !strings.HasPrefix(name, ".") {
		return false
	}
	left := mostEntries
	var look func(at string, depth int) bool
	look = func(at string, depth int) bool {
		entries, err := list(dir, at)
		if err != nil {
			return false
		}
		for _, entry := range entries {
			if left--; left < 0 {
				return true // an unsearchable directory is not trusted
			}
			below := path.Join(at, entry.Name())
			if entry.IsDir() && depth < deepest && look(below, depth+1) || entry.Type().IsRegular() && risky(below, entry) {
				return true
			}
		}
		return false
	}
	return look(name, 1)
}

func list(dir *os.Root, name string) ([]fs.DirEntry, error) {
	at, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	entries, err := hostile.Entries(at, -1)
	return entries, errors.Join(err, at.Close())
}

// modules are the paths of submodules, by the index and by .gitmodules: git on
// the host enters them when it runs at the top.
func modules(dir *os.Root, index []byte, format string) []string {
	found := gitlinks(index, format)
	data, err := readFile(dir, ".gitmodules")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			key, value, ok := strings.Cut(line, "=")
			if value = strings.TrimSpace(value); ok && strings.TrimSpace(key) == "path" && git.BadPath(value, git.ModeGitlink) == "" {
				found = append(found, value)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
