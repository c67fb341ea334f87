package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// endingsKept is how long the record of who ended a sandbox is kept: longer than
// any client that worked in it waits.
const endingsKept = 24 * time.Hour

func (s *Store) endingsDir(gitDir string) string {
	return filepath.Join(s.RepositoryDir(gitDir), "endings")
}

func (s *Store) endingFile(gitDir, id string) string {
	return filepath.Join(s.endingsDir(gitDir), id+".json")
}

// SaveEnding records who ends a sandbox and how, where its clients find it when
// the sandbox is gone. Endings of more than a day ago are dropped.
func (s *Store) SaveEnding(gitDir, id string, ending *sandbox.Ending) error {
	dir := s.endingsDir(gitDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unavailable(err, "record the end of a sandbox")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return unavailable(err, "record the end of a sandbox")
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > endingsKept {
			err = ignoreMissing(os.Remove(filepath.Join(dir, entry.Name())))
		}
		if ignoreMissing(err) != nil {
			return unavailable(err, "drop the record of an end")
		}
	}
	ending.Version = sandbox.RecordVersion
	return s.write(s.endingFile(gitDir, id), ending)
}

// Ending reads who ended a sandbox; nil without an error when that is not known.
func (s *Store) Ending(gitDir, id string) (*sandbox.Ending, error) {
	var ending sandbox.Ending
	err := s.read(s.endingFile(gitDir, id), &ending)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, seal.ErrDamaged) {
		return nil, nil // it only words a message
	}
	if err != nil {
		return nil, err
	}
	return &ending, nil
}

// RemoveEnding records that the sandbox goes on.
func (s *Store) RemoveEnding(gitDir, id string) error {
	if err := ignoreMissing(os.Remove(s.endingFile(gitDir, id))); err != nil {
		return unavailable(err, "drop the record of an end")
	}
	return nil
}
