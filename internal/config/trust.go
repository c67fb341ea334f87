package config

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Trust remembers which configuration of which repository the human agreed to. A
// repository is known by its common git directory, so that its linked worktrees
// share the answer; a file whose content changed is no longer trusted. The methods
// may be called from any number of processes at once.
type Trust struct {
	File string // made with its directories at the first Grant
}

// trustVersion is the form of the file below. A newer program migrates older
// ones; an older program refuses newer ones.
const trustVersion = 1

type trustRecord struct {
	Version      int               `json:"version"`
	Repositories map[string]string `json:"repositories"` // to Hash of the content
	damaged      bool
}

// Trusted reports whether the human agreed to this content of the repository's
// configuration. On error the answer is no.
func (t Trust) Trusted(repository, hash string) (bool, error) {
	key, err := trustKey(repository)
	if err != nil {
		return false, err
	}
	record, err := t.load()
	if err != nil {
		return false, err
	}
	return hash != "" && record.Repositories[key] == hash, nil
}

// Grant records that the human agrees to the content with this hash, in place
// of any earlier one.
func (t Trust) Grant(ctx context.Context, repository, hash string) error {
	if hash == "" {
		return fault.New(fault.Invalid, "cannot trust the configuration of %q: there is none", repository)
	}
	return t.change(ctx, repository, func(known map[string]string, key string) { known[key] = hash })
}

// Revoke forgets the repository. An unknown one is not an error.
func (t Trust) Revoke(ctx context.Context, repository string) error {
	return t.change(ctx, repository, func(known map[string]string, key string) { delete(known, key) })
}

// trustKey is the repository as a JSON string. Paths are bytes: JSON would
// write different broken ones alike, and one repository would be trusted in
// place of another. An absolute path never looks like the second form.
func trustKey(repository string) (string, error) {
	clean := filepath.Clean(repository)
	switch {
	case !filepath.IsAbs(clean):
		return "", fault.New(fault.Internal, "cannot look up the trust of %q: the path is not absolute", repository)
	case !utf8.ValidString(clean):
		return "base64:" + base64.StdEncoding.EncodeToString([]byte(clean)), nil
	}
	return clean, nil
}

// change rewrites the file under its lock. The lock is a file of its own,
// because the rename replaces the one that holds the record.
func (t Trust) change(ctx context.Context, repository string, apply func(known map[string]string, key string)) (err error) {
	key, err := trustKey(repository)
	if err != nil {
		return err
	}
	failed := func(err error) error {
		return fault.New(fault.Unavailable, "cannot record trust in %s: %v", display(t.File), cause(err))
	}
	if err := os.MkdirAll(filepath.Dir(t.File), 0o700); err != nil {
		return failed(err)
	}
	held, err := os.OpenFile(t.File+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return failed(err)
	}
	defer held.Close() // which releases the lock
	if err := lock.File(ctx, held); err != nil {
		return err
	}
	record, err := t.load()
	if err != nil {
		return err
	}
	if record.damaged { // the user may want to read what was trusted
		if err := os.Rename(t.File, t.File+".damaged"); err != nil {
			return failed(err)
		}
	}
	apply(record.Repositories, key)
	content, err := seal.Encode(record)
	if err != nil {
		return failed(err)
	}
	if err := replace(t.File, content, nil); err != nil {
		return failed(err)
	}
	return nil
}

func (t Trust) load() (trustRecord, error) {
	empty := trustRecord{Version: trustVersion, Repositories: map[string]string{}}
	content, err := os.ReadFile(t.File)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return trustRecord{}, fault.New(fault.Unavailable, "cannot read %s: %v", display(t.File), cause(err))
	}
	var record trustRecord
	if seal.Decode(content, &record) != nil {
		// Nothing is trusted then; every use of a configuration says so, and what
		// to type.
		empty.damaged = true
		return empty, nil
	}
	if record.Version != trustVersion {
		return trustRecord{}, fault.New(fault.Unsupported, "cannot read %s: it has version %d, this program knows %d", display(t.File), record.Version, trustVersion).
			WithHint("use the newer litterbox that wrote it")
	}
	if record.Repositories == nil {
		record.Repositories = map[string]string{}
	}
	return record, nil
}

// replace writes a file so that every reader, also after a crash, finds the
// old content or the new one. The new file has mode 0600 unless prepare, which
// may be nil, changes that.
func replace(file string, content []byte, prepare func(*os.File) error) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(temporary.Name())))
		}
	}()
	_, err = temporary.Write(content)
	if err == nil && prepare != nil {
		err = prepare(temporary)
	}
	if err == nil {
		// Before the rename, or a power loss can leave an empty file.
		err = temporary.Sync()
	}
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
