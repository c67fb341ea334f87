package store

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// readClaim reads the file of a name: the id that holds it, and on a second line
// the process that claimed it. Any other content is damaged: taken literally, it
// would free the name for another sandbox.
func readClaim(content []byte) (id string, by sandbox.Process, err error) {
	content, err = seal.Open(content)
	if err != nil {
		return "", by, err
	}
	id, line, known := strings.Cut(string(content), "\n")
	if !isID(id) {
		return "", by, fmt.Errorf("%w: it holds no id", seal.ErrDamaged)
	}
	if known && json.Unmarshal([]byte(line), &by) != nil {
		by = sandbox.Process{}
	}
	return id, by, nil
}

// isID reports whether id is a name, a hyphen and eight digits. The name is the
// one that the sandbox had at first.
func isID(id string) bool {
	at := strings.LastIndexByte(id, '-')
	if at < 0 || !idEnd().MatchString(id[at+1:]) {
		return false
	}
	slug, err := sandbox.Slug(id[:at])
	return err == nil && slug == id[:at]
}

// ClaimAlso gives a sandbox a further name, for as long as it is being renamed.
// One that has the name already keeps it.
func (s *Store) ClaimAlso(gitDir, name, id string) error {
	if holder, err := s.Claimed(gitDir, name); err != nil || holder == id {
		return err
	}
	err := claimName(filepath.Join(s.RepositoryDir(gitDir), "names"), name, id)
	if fault.KindOf(err) == fault.AlreadyExists {
		return fault.New(fault.AlreadyExists, "cannot use the name %q: a sandbox of that name exists", name).WithHint("litterbox status %s", name)
	}
	return err
}

// idEnd is the part of an id after the name and a hyphen.
var idEnd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{8}$`)
})

// anothers reports whether a claim surely belongs to a sandbox other than id.
func anothers(claim []byte, id string) bool {
	claim, err := seal.Open(claim)
	holder, _, _ := bytes.Cut(claim, []byte("\n"))
	return err == nil && string(holder) != id
}

// mendClaim writes a damaged claim again, from the record of the sandbox that
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

// DropClaim removes an unreadable claim that no record mentions.
func (s *Store) DropClaim(gitDir, name string) error {
	if _, _, err := s.Claimant(gitDir, name); !errors.Is(err, seal.ErrDamaged) {
		return err // it can be read now
	}
	if err := ignoreMissing(os.Remove(filepath.Join(s.RepositoryDir(gitDir), "names", name))); err != nil {
		return unavailable(err, "release the name %q", name)
	}
	return nil
}

// Claim reserves name within the repository for a new sandbox and returns the
// new sandbox's id. It fails with fault.AlreadyExists when the name is taken;
// of many racing callers exactly one wins.
func (s *Store) Claim(gitDir, name string) (id string, err error) {
	dir := filepath.Join(s.RepositoryDir(gitDir), "names")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", unavailable(err, "claim the name %q", name)
	}
	if err := s.rememberRepository(gitDir); err != nil {
		return "", err
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails (crypto/rand, Go 1.24)
	id = name + "-" + hex.EncodeToString(random)
	if err := s.before(filepath.Join(dir, name)); err != nil {
		return "", unavailable(err, "claim the name %q", name)
	}
	// The directory first: a process that finds the name finds it too, and does not
	// take the claim for that of a dead process.
	if err := os.MkdirAll(s.SandboxDir(id), 0o700); err != nil {
		return "", unavailable(err, "make the directory of sandbox %q", name)
	}
	if err := claimName(dir, name, id); err != nil {
		return "", errors.Join(err, os.Remove(s.SandboxDir(id)))
	}
	return id, nil
}

// Move makes the name of a sandbox count in another repository, and no longer
// in the one that its record says. It fails with fault.AlreadyExists when the
// name is taken there.
func (s *Store) Move(record *sandbox.Sandbox, gitDir string) error {
	names := filepath.Join(s.RepositoryDir(gitDir), "names")
	if err := os.MkdirAll(names, 0o700); err != nil {
		return unavailable(err, "claim the name %q", record.Name)
	}
	if err := s.rememberRepository(gitDir); err != nil {
		return err
	}
	// A call killed between the two halves has claimed it already.
	if id, err := s.Claimed(gitDir, record.Name); err != nil {
		return err
	} else if id != record.ID {
		if err := claimName(names, record.Name, record.ID); err != nil {
			return err
		}
	}
	return s.Release(record.GitDir, record.Name, record.ID)
}

// claimName makes names/name hold id. A hard link appears with its content or not
// at all, so no one reads a name without an id.
func claimName(names, name, id string) error {
	temp := filepath.Join(names, "."+id)
	content := id
	// The claimant, so that no one waits for a dead one. Systems that cannot tell
	// go by the age of the directory.
	if self, err := process.Identify(os.Getpid()); err == nil {
		line, err := json.Marshal(self)
		if err != nil {
			return unavailable(err, "claim the name %q", name)
		}
		content = string(seal.Line([]byte(content + "\n" + string(line))))
	}
	err := os.WriteFile(temp, []byte(content), 0o600)
	if err == nil {
		err = errors.Join(os.Link(temp, filepath.Join(names, name)), os.Remove(temp))
	}
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.AlreadyExists, "cannot create sandbox %q: a sandbox of that name exists", name).
			WithHint("litterbox shell %s, or another name", name)
	}
	if err != nil {
		return unavailable(err, "claim the name %q", name)
	}
	return nil
}

// Release gives up a name that sandbox id holds, once its files are gone. A name
// that another sandbox has claimed meanwhile stays.
func (s *Store) Release(gitDir, name, id string) error {
	names := filepath.Join(s.RepositoryDir(gitDir), "names")
	if err := s.before(filepath.Join(names, name)); err != nil {
		return unavailable(err, "release the name %q", name)
	}
	// Moved to a private name first: of two releases, one gets it.
	mine := filepath.Join(names, "."+id+"-released")
	err := os.Rename(filepath.Join(names, name), mine)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unavailable(err, "release the name %q", name)
	}
	if holder, err := process.ReadAtOnce(mine); err == nil && anothers(holder, id) {
		return ignoreMissing(os.Rename(mine, filepath.Join(names, name)))
	}
	return ignoreMissing(os.Remove(mine))
}

// Claimed returns the id that holds name, or "" when none does.
func (s *Store) Claimed(gitDir, name string) (string, error) {
	id, _, err := s.Claimant(gitDir, name)
	return id, err
}

// Claimant returns the id that holds name, or "", and the process that claimed it;
// the process is zero where it is not known.
func (s *Store) Claimant(gitDir, name string) (id string, by sandbox.Process, err error) {
	if s.Looked != nil {
		s.Looked(name)
	}
	content, err := process.ReadAtOnce(filepath.Join(s.RepositoryDir(gitDir), "names", name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", by, nil
	}
	if err != nil {
		return "", by, unavailable(err, "look up sandbox %q", name)
	}
	id, by, err = readClaim(content)
	if err != nil {
		id, err = s.mendClaim(gitDir, name)
	}
	return id, by, err
}

// Find returns the record of a repository's sandbox by name; fault.NotFound
// when there is none.
func (s *Store) Find(gitDir, name string) (*sandbox.Sandbox, error) {
	id, err := s.Claimed(gitDir, name)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, fault.New(fault.NotFound, "no sandbox named %q in this repository", name).
			WithHint("litterbox list")
	}
	return s.Sandbox(id)
}
