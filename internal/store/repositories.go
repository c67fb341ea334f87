package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// repository says which repository a directory of repos/ stands for.
type repository struct {
	Version int    `json:"version"`
	GitDir  string `json:"git_dir"`
}

func (s *Store) rememberRepository(gitDir string) error {
	path := filepath.Join(s.RepositoryDir(gitDir), "repo.json")
	var known repository
	if err := s.read(path, &known); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, seal.ErrDamaged) {
		return nil // it is there, or cannot be read; the name is claimed all the same
	}
	return s.write(path, repository{Version: sandbox.RecordVersion, GitDir: gitDir})
}

// Repositories lists the common git directories of all repositories that ever
// had a sandbox, those that are gone included, sorted.
func (s *Store) Repositories() ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(s.Root, "repos", "*", "repo.json"))
	if err != nil {
		return nil, unavailable(err, "list repositories")
	}
	var all []string
	for _, path := range paths {
		var one repository
		if err := s.read(path, &one); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // just removed
			}
			if !errors.Is(err, seal.ErrDamaged) {
				return nil, err
			}
			if one.GitDir, err = s.mendRepository(filepath.Base(filepath.Dir(path))); err != nil {
				return nil, err
			}
			if one.GitDir == "" {
				continue // no sandbox uses it: the next one writes it again
			}
		}
		all = append(all, one.GitDir)
	}
	slices.Sort(all)
	return all, nil
}

// mendRepository finds out which repository a key stands for, by the records of its
// sandboxes, and records it again. It gives "" when it has none.
func (s *Store) mendRepository(key string) (gitDir string, err error) {
	records, _, err := s.Sandboxes()
	if err != nil {
		return "", err
	}
	for _, record := range records {
		if RepositoryKey(record.GitDir) == key {
			return record.GitDir, s.rememberRepository(record.GitDir)
		}
	}
	return "", nil
}

// Names maps the names that are claimed in a repository to sandbox ids. An
// unreadable claim that no record mentions has none.
func (s *Store) Names(gitDir string) (map[string]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.RepositoryDir(gitDir), "names"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err, "list the sandboxes of %q", gitDir)
	}
	names := map[string]string{}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // being claimed or released
		}
		id, err := s.Claimed(gitDir, entry.Name())
		if err != nil && !errors.Is(err, seal.ErrDamaged) {
			return nil, err
		}
		if id != "" || err != nil {
			names[entry.Name()] = id
		}
	}
	return names, nil
}

// ForgetRepository removes the data of a repository that has no sandbox.
func (s *Store) ForgetRepository(gitDir string) error {
	dir := s.RepositoryDir(gitDir)
	// Only an empty directory of names can go: a claim wins.
	if err := ignoreMissing(os.Remove(filepath.Join(dir, "names"))); err != nil {
		return unavailable(err, "forget the repository %q", gitDir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return unavailable(err, "forget the repository %q", gitDir)
	}
	return nil
}
