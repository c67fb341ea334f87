package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

func (s *Store) agentFile(id string) string { return filepath.Join(s.SandboxDir(id), "agent.json") }

// SaveAgent writes which agent holds a sandbox.
func (s *Store) SaveAgent(id string, agent *sandbox.Agent) error {
	agent.Version = sandbox.RecordVersion
	return s.write(s.agentFile(id), agent)
}

// Agent reads which agent holds a sandbox; nil without an error for none, and for a
// damaged record: the holder writes it again soon.
func (s *Store) Agent(id string) (*sandbox.Agent, error) {
	var agent sandbox.Agent
	err := s.read(s.agentFile(id), &agent)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, seal.ErrDamaged) {
		return nil, nil // an unreadable hold must not block everyone
	}
	if err != nil {
		return nil, err
	}
	return &agent, nil
}

// RemoveAgent records that no agent holds a sandbox.
func (s *Store) RemoveAgent(id string) error {
	if err := os.Remove(s.agentFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unavailable(err, "give up the sandbox")
	}
	return nil
}
