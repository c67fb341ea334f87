package store

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Deletion is written into a sandbox's directory when it is deleted and its files
// are kept: with it the next command finishes an interrupted deletion.
type Deletion struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"`
	Commits int       `json:"commits"` // that were not merged
	Tip     string    `json:"tip"`     // its last commit, once its branch is in the trash
	// Far is what its files take in their machine, in bytes, as far as that was said.
	Far int64 `json:"far_bytes,omitempty"`
}

const deletionFile = "deletion.json"

// Trash holds the directories of deleted sandboxes: a state directory of the same
// layout, below this one. A directory enters and leaves it by one rename.
func (s *Store) Trash() *Store {
	return &Store{Root: filepath.Join(s.Root, "trash"), Before: s.Before, Looked: s.Looked, strict: s.strict, known: s.known}
}

// MoveTo moves the directory of a sandbox to another state directory of the
// same file system, at once or not at all.
func (s *Store) MoveTo(other *Store, id string) error {
	to := other.SandboxDir(id)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return unavailable(err, "make %q", filepath.Dir(to))
	}
	if err := s.before(to); err != nil {
		return unavailable(err, "move the files of sandbox %q", id)
	}
	if err := os.Rename(s.SandboxDir(id), to); err != nil {
		return unavailable(err, "move the files of sandbox %q", id)
	}
	return nil
}

// Deletion reads the note that was made when the sandbox was deleted;
// fs.ErrNotExist when there is none.
func (s *Store) Deletion(id string) (Deletion, error) {
	var d Deletion
	err := s.read(filepath.Join(s.SandboxDir(id), deletionFile), &d)
	return d, err
}

// SaveDeletion notes that the sandbox is being deleted and its files are kept.
func (s *Store) SaveDeletion(id string, d Deletion) error {
	d.Version = 1
	return s.write(filepath.Join(s.SandboxDir(id), deletionFile), d)
}

// DropDeletion takes the note back.
func (s *Store) DropDeletion(id string) error {
	if err := ignoreMissing(os.Remove(filepath.Join(s.SandboxDir(id), deletionFile))); err != nil {
		return unavailable(err, "forget the deletion of sandbox %q", id)
	}
	return nil
}

// Reclaim takes the name for a sandbox that had it before. It fails with
// fault.AlreadyExists when another one has it.
func (s *Store) Reclaim(gitDir, name, id string) error {
	names := filepath.Join(s.RepositoryDir(gitDir), "names")
	if err := os.MkdirAll(names, 0o700); err != nil {
		return unavailable(err, "claim the name %q", name)
	}
	if err := s.rememberRepository(gitDir); err != nil {
		return err
	}
	holder, err := s.Claimed(gitDir, name)
	if err != nil || holder == id {
		return err
	}
	err = claimName(names, name, id)
	if fault.KindOf(err) == fault.AlreadyExists {
		err = fault.New(fault.AlreadyExists, "cannot restore sandbox %q: a sandbox of that name exists", name).
			WithHint("litterbox merge %s or litterbox delete %s, and restore again", name, name)
	}
	return errors.Join(err)
}
