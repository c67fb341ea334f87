// Package store is the state on disk: one directory per sandbox with small
// JSON records (atomic rename, file locks) and append-only JSON Lines.
// Everything can be read with cat. It knows no git and no driver.
//
// Layout below the root:
//
//	repos/<key>/repo.json        which repository the key stands for
//	repos/<key>/git-<hash>.json  what git last said of its configuration
//	repos/<key>/names/<name>     id of the sandbox that has claimed the name
//	repos/<key>/endings/<id>.json  who merged, deleted or stopped that sandbox of late
//	repos/<key>/cache/           trees and packs, shared by its sandboxes
//	sandboxes/<id>/sandbox.json  lease.json
//	sandboxes/<id>/origin.json   sandbox.json as it was at the last start
//	sandboxes/<id>/cycles/<n>.jsonl  cycles.jsonl   those that run; those that are over
//	sandboxes/<id>/agent.json    which agent holds it; missing when none does
//	sandboxes/<id>/iterations.jsonl
//	sandboxes/<id>/upper work home caches tmp …   the place's own files
//	trash/sandboxes/<id>/        the directory of one that was deleted, for a while
//	trash/trash/sandboxes/<id>/  the same, being removed
//	events.jsonl events-<n>.jsonl  what happened, in all of them
//	images/layers/<digest>       unpacked layers of images, shared by all sandboxes
//	images/names/<hash>.json     what a name of an image stood for
//	runs/<id>/<n>/               runs of agents in a sandbox, which they outlive: see runs.go
//	clients/<name>/              agents' clients that npm has installed for all sandboxes
//	audit/                       the audit log, see package audit
//	trust.json                   which configurations the human trusted
//
// Records and lines carry a checksum (package seal). What a crash or a disk has
// damaged is a [seal.ErrDamaged], never taken for what it is not.
//
// Start reading at [Store].
package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Store is the state directory of one user.
type Store struct {
	Root   string
	strict bool
}

// Durable returns the same state directory for work of which every record is
// flushed to the disk before it counts (durability = "strict"), or for other
// work. One process serves sandboxes of both kinds, so this is never a setting
// of the process.
func (s *Store) Durable(strict bool) *Store { return &Store{Root: s.Root, strict: strict} }

// Strict reports whether every record is flushed.
func (s *Store) Strict() bool { return s.strict }

// DefaultRoot is $XDG_STATE_HOME/litterbox, or ~/.local/state/litterbox, as who
// has it.
func DefaultRoot(who *caller.Caller) (string, error) {
	if dir := who.Get("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "litterbox"), nil
	}
	if who.Home == "" {
		return "", fault.New(fault.Unavailable, "cannot find the state directory: HOME is not set").
			WithHint("export XDG_STATE_HOME=/some/directory")
	}
	return filepath.Join(who.Home, ".local", "state", "litterbox"), nil
}

// Open uses root, making it when it is missing. The directory is private
// (0700): sockets, keys, and programs that are executed lie below it, so one
// that another user controls is refused with fault.Denied.
func Open(root string) (*Store, error) {
	// Links are resolved once here: what lies below is compared, bound and
	// locked by path from several processes.
	refused := func(err error) error { return fault.Wrap(fault.Denied, err, "cannot use the state directory") }
	// Before anything is made in a directory of another user's.
	if err := ownership.Check(root); fault.KindOf(err) == fault.Denied {
		return nil, refused(err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot make the state directory").
			WithHint("export XDG_STATE_HOME=/a/writable/directory")
	}
	real, err := ownership.Directory(root)
	if err == nil {
		err = ownPlaces(real)
	}
	if fault.KindOf(err) == fault.Denied {
		return nil, refused(err)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot use the state directory %q", root)
	}
	return &Store{Root: real}, nil
}

// ownPlaces looks at what lies at the top of the state directory. Nobody else
// can put anything there, but root may have taken over the directory of a user
// with all that was in it.
func ownPlaces(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := ownership.Check(filepath.Join(root, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// RepositoryKey names a repository in paths: a hash of its common git directory.
func RepositoryKey(gitDir string) string {
	sum := sha256.Sum256([]byte(gitDir))
	return hex.EncodeToString(sum[:8])
}

// RepositoryDir is where the shared cache and the names of a repository lie.
func (s *Store) RepositoryDir(gitDir string) string {
	return filepath.Join(s.Root, "repos", RepositoryKey(gitDir))
}

// SandboxDir is the directory of one sandbox.
func (s *Store) SandboxDir(id string) string {
	return filepath.Join(s.Root, "sandboxes", id)
}

// TrustFile holds what the human trusted.
func (s *Store) TrustFile() string { return filepath.Join(s.Root, "trust.json") }

// LocksOf gives Lock for one sandbox.
func (s *Store) LocksOf(id string) func(ctx context.Context, name string) (unlock func(), err error) {
	return func(ctx context.Context, name string) (func(), error) { return s.Lock(ctx, id, name) }
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
	// The directory first: whoever finds the name finds it too, and does not
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
	// One that was killed between the two halves has claimed it already.
	if id, err := s.Claimed(gitDir, record.Name); err != nil {
		return err
	} else if id != record.ID {
		if err := claimName(names, record.Name, record.ID); err != nil {
			return err
		}
	}
	return s.Release(record.GitDir, record.Name, record.ID)
}

// claimName makes names/name hold id. A hard link appears with its content or
// not at all, so nobody reads a name without an id.
func claimName(names, name, id string) error {
	temp := filepath.Join(names, "."+id)
	content := id
	// Who claims it, so that nobody waits for a dead one. Systems where that
	// cannot be told go by the age of the directory.
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
			WithHint("litterbox status %s", name)
	}
	if err != nil {
		return unavailable(err, "claim the name %q", name)
	}
	return nil
}

// Release gives a name up that sandbox id holds, once its files are gone. A
// name that another sandbox has claimed meanwhile stays.
func (s *Store) Release(gitDir, name, id string) error {
	names := filepath.Join(s.RepositoryDir(gitDir), "names")
	// Moved to a name of our own first: of two who release, one gets it.
	mine := filepath.Join(names, "."+id+"-released")
	err := os.Rename(filepath.Join(names, name), mine)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unavailable(err, "release the name %q", name)
	}
	if holder, err := os.ReadFile(mine); err == nil && anothers(holder, id) {
		return ignoreMissing(os.Rename(mine, filepath.Join(names, name)))
	}
	return ignoreMissing(os.Remove(mine))
}

// Claimed returns the id that holds name, or "" when nobody does.
func (s *Store) Claimed(gitDir, name string) (string, error) {
	id, _, err := s.Claimant(gitDir, name)
	return id, err
}

// Claimant returns the id that holds name, or "", and the process that claimed
// it; that one is zero where it is not known.
func (s *Store) Claimant(gitDir, name string) (id string, by sandbox.Process, err error) {
	content, err := os.ReadFile(filepath.Join(s.RepositoryDir(gitDir), "names", name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", by, nil
	}
	if err != nil {
		return "", by, unavailable(err, "look up sandbox %q", name)
	}
	id, by, err = readClaim(content, name)
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

// Sandbox reads the record of one sandbox by id.
func (s *Store) Sandbox(id string) (*sandbox.Sandbox, error) {
	var record sandbox.Sandbox
	if err := s.read(filepath.Join(s.SandboxDir(id), "sandbox.json"), &record); err != nil {
		return nil, err
	}
	if record.Version > sandbox.RecordVersion {
		return nil, fault.New(fault.Unsupported,
			"cannot use sandbox %q: its record is version %d and this program knows %d", record.Name, record.Version, sandbox.RecordVersion).
			WithHint("install a newer litterbox")
	}
	return &record, nil
}

// SaveOrigin writes a copy of a sandbox's record from which it can be made anew
// when it is damaged. What has changed since stands in git and in the log.
func (s *Store) SaveOrigin(record *sandbox.Sandbox) error {
	record.Version = sandbox.RecordVersion
	return s.write(filepath.Join(s.SandboxDir(record.ID), originFile), record)
}

// Origin reads the copy; fs.ErrNotExist when there is none.
func (s *Store) Origin(id string) (*sandbox.Sandbox, error) {
	var record sandbox.Sandbox
	if err := s.read(filepath.Join(s.SandboxDir(id), originFile), &record); err != nil {
		return nil, err
	}
	if record.ID != id || record.Version > sandbox.RecordVersion {
		return nil, fault.New(fault.Unsupported, "cannot make the record of sandbox %q anew", id)
	}
	return &record, nil
}

const originFile = "origin.json"

// Save writes a sandbox's record.
func (s *Store) Save(record *sandbox.Sandbox) error {
	record.Version = sandbox.RecordVersion
	return s.write(filepath.Join(s.SandboxDir(record.ID), "sandbox.json"), record)
}

// Unreadable is a sandbox whose record cannot be read.
type Unreadable struct {
	ID  string
	Err error
}

// Sandboxes lists the records of all repositories by creation time. A record
// that cannot be read is reported in the second result, never dropped silently;
// err is about the directory of all of them.
func (s *Store) Sandboxes() (records []*sandbox.Sandbox, unreadable []Unreadable, err error) {
	entries, err := os.ReadDir(filepath.Join(s.Root, "sandboxes"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unavailable(err, "list sandboxes")
	}
	for _, entry := range entries {
		record, err := s.Sandbox(entry.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // being created or deleted at this moment
		}
		if err != nil {
			unreadable = append(unreadable, Unreadable{ID: entry.Name(), Err: err})
			continue
		}
		records = append(records, record)
	}
	sort.SliceStable(records, func(i, j int) bool { return records[i].CreatedAt.Before(records[j].CreatedAt) })
	return records, unreadable, nil
}

// SaveLease writes the lease of its sandbox.
func (s *Store) SaveLease(lease *sandbox.Lease) error {
	lease.Version = sandbox.RecordVersion
	return s.write(filepath.Join(s.SandboxDir(lease.SandboxID), "lease.json"), lease)
}

// Lease reads a sandbox's lease; nil without an error when it never had one.
func (s *Store) Lease(id string) (*sandbox.Lease, error) {
	var lease sandbox.Lease
	err := s.read(filepath.Join(s.SandboxDir(id), "lease.json"), &lease)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if lease.Version > sandbox.RecordVersion {
		return nil, fault.New(fault.Unsupported,
			"cannot use the lease of sandbox %q: its record is version %d and this program knows %d", id, lease.Version, sandbox.RecordVersion).
			WithHint("install a newer litterbox")
	}
	return &lease, nil
}
