package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// readClaim reads the file of a name: the id that holds it, and on a second
// line who claimed it. A claim that says something else is damaged: taken at its
// word, the name would be free for another sandbox.
func readClaim(content []byte, name string) (id string, by sandbox.Process, err error) {
	content, err = seal.Open(content)
	if err != nil {
		return "", by, err
	}
	id, line, known := strings.Cut(string(content), "\n")
	if random, ok := strings.CutPrefix(id, name+"-"); !ok || !idEnd().MatchString(random) {
		return "", by, fmt.Errorf("%w: it holds no id", seal.ErrDamaged)
	}
	if known && json.Unmarshal([]byte(line), &by) != nil {
		by = sandbox.Process{}
	}
	return id, by, nil
}

// idEnd is what an id has after the name and a hyphen.
var idEnd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{8}$`)
})

// anothers tells whether a claim is surely of another sandbox than id.
func anothers(claim []byte, id string) bool {
	claim, err := seal.Open(claim)
	holder, _, _ := bytes.Cut(claim, []byte("\n"))
	return err == nil && string(holder) != id
}

// mendClaim writes a damaged claim anew, from the record of the sandbox that
// has the name.
func (s *Store) mendClaim(gitDir, name string) (id string, err error) {
	path := filepath.Join(s.RepositoryDir(gitDir), "names", name)
	records, _, err := s.Sandboxes()
	if err != nil {
		return "", err
	}
	for _, record := range records {
		if record.Name == name && record.GitDir == gitDir {
			temp := filepath.Join(filepath.Dir(path), "."+record.ID+"-mended")
			err := os.WriteFile(temp, []byte(record.ID), 0o600)
			if err == nil {
				err = os.Rename(temp, path)
			}
			if err != nil {
				return "", errors.Join(unavailable(err, "claim the name %q", name), ignoreMissing(os.Remove(temp)))
			}
			return record.ID, nil
		}
	}
	return "", damaged(seal.ErrDamaged, path).WithHint("litterbox doctor --fix, which clears it away")
}

// DropClaim removes a claim that cannot be read and that no record speaks of.
func (s *Store) DropClaim(gitDir, name string) error {
	if _, _, err := s.Claimant(gitDir, name); !errors.Is(err, seal.ErrDamaged) {
		return err // it can be read now
	}
	if err := ignoreMissing(os.Remove(filepath.Join(s.RepositoryDir(gitDir), "names", name))); err != nil {
		return unavailable(err, "release the name %q", name)
	}
	return nil
}
