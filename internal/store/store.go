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
//	environments/                the same of live environments, as another state directory
//	audit/                       the audit log, see package audit
//	trust.json                   which configurations the human trusted
//	known-values                 fingerprints of secrets, which no record may show
//
// Records and lines carry a checksum (package seal). Anything that a crash or a
// disk has damaged is a [seal.ErrDamaged], never taken for something else.
//
// Start reading at [Store].
package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Store is the state directory of one user.
type Store struct {
	Root string
	// Before, unless nil, is asked before each change of a record; its error is
	// that of the change. It may come from several goroutines at once. Tests put
	// crashes and full disks there.
	Before func(path string) error
	// Looked, unless nil, is told of each look-up of a name. It may come from
	// several goroutines at once. Tests count there.
	Looked func(name string)

	shared string // the state directory that contains this one; empty is Root
	strict bool
	known  *redact.Known
}

// Durable returns the same state directory for work whose every record is flushed
// to the disk before it counts (durability = "strict"), or for other work. One
// process serves sandboxes of both kinds, so this is never a setting of the
// process.
func (s *Store) Durable(strict bool) *Store {
	return &Store{Root: s.Root, Before: s.Before, Looked: s.Looked, shared: s.shared, strict: strict, known: s.known}
}

// knownValues has fingerprints of the values of secrets.
const knownValues = "known-values"

// KnownValues is the file with fingerprints of the values of secrets, beside the
// records that must not show them.
func (s *Store) KnownValues() string { return filepath.Join(s.Shared(), knownValues) }

// Redacts removes from text everything that no record may show, also values known
// only by their fingerprints.
func (s *Store) Redacts() redact.Secrets { return redact.Secrets{Known: s.known} }

// Strict reports whether every record is flushed.
func (s *Store) Strict() bool { return s.strict }

// DefaultRoot is the state directory of who: $XDG_STATE_HOME/litterbox, or
// ~/.local/state/litterbox.
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

// Open uses root, making it when it is missing. The directory is private (0700):
// sockets, keys, and programs that are executed are below it, so one that another
// user controls is refused with fault.Denied.
func Open(root string) (*Store, error) {
	// Links are resolved once here: paths below are compared, bound and locked by
	// several processes.
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
	return &Store{Root: real, known: redact.OpenKnown(filepath.Join(real, knownValues))}, nil
}

// ownPlaces checks the entries at the top of the state directory. No other user can
// put anything there, but root may have taken over a user's directory with its
// content.
func ownPlaces(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := ownership.Entry(root, entry.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// RepositoryDir is the directory of the shared cache and the names of a repository.
func (s *Store) RepositoryDir(gitDir string) string {
	return filepath.Join(s.Root, "repos", RepositoryKey(gitDir))
}

// SandboxDir is the directory of one sandbox.
func (s *Store) SandboxDir(id string) string {
	return filepath.Join(s.Root, "sandboxes", id)
}

// TrustFile holds what the human trusted.
func (s *Store) TrustFile() string { return filepath.Join(s.Shared(), "trust.json") }

// LocksOf gives Lock for one sandbox.
func (s *Store) LocksOf(id string) func(ctx context.Context, name string) (unlock func(), err error) {
	return func(ctx context.Context, name string) (func(), error) { return s.Lock(ctx, id, name) }
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

// SaveOrigin writes a copy of a sandbox's record from which it can be made again
// when it is damaged. Later changes are in git and in the log.
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
		return nil, fault.New(fault.Unsupported, "cannot rebuild the record of sandbox %q", id)
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

// Sandboxes lists the records of all repositories by creation time. A record that
// cannot be read is reported in the second result, never dropped silently; err is
// about the directory that holds them all.
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
