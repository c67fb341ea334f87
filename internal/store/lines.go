package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// AppendIteration adds one line to the sandbox's log. Secrets known by their shape
// are removed here at the latest, as in all records of commands.
func (s *Store) AppendIteration(id string, iteration *sandbox.Iteration) error {
	iteration.Version = sandbox.RecordVersion
	clean := s.Redacts()
	iteration.Command, iteration.Message = clean.Text(iteration.Command), clean.Tokens(iteration.Message)
	return s.appendLine(filepath.Join(s.SandboxDir(id), "iterations.jsonl"), iteration)
}

// Iterations reads the log, oldest first. A last line that a crash tore is left
// out; its commit is on the branch all the same.
func (s *Store) Iterations(id string) ([]sandbox.Iteration, error) {
	path := filepath.Join(s.SandboxDir(id), "iterations.jsonl")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err, "read the log %q", path)
	}
	var all []sandbox.Iteration
	for line := range bytes.Lines(data) {
		var one sandbox.Iteration
		if seal.Decode(line, &one) != nil {
			continue // torn by a crash
		}
		all = append(all, one)
	}
	return all, nil
}

// appendLine writes one JSON line with a single write(2) on an O_APPEND
// descriptor. When a crash has torn the line before, it starts a fresh one.
func (s *Store) appendLine(path string, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return unavailable(err, "encode a line of %q", path)
	}
	data = seal.Line(data)
	if err := s.before(path); err != nil {
		return unavailable(err, "append to the log %q", path)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return unavailable(err, "open the log %q", path)
	}
	if info, statErr := file.Stat(); statErr == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			data = append([]byte{'\n'}, data...)
		}
	}
	_, err = file.Write(append(data, '\n'))
	if err == nil && s.Strict() {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return unavailable(err, "append to the log %q", path)
	}
	return nil
}
