package vault

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// knownFull is the size in bytes from which a file of fingerprints moves aside,
// in the place of the one before: each holds some hundred values, of which the
// newest count.
const knownFull = 256 << 10

// keyFile holds the key of fingerprints.
const keyFile = "known.key"

// Remember keeps a value that was read out of records: it appends the value's
// fingerprints to a file that [redact.Known] reads. Their key is in the vault,
// or, where nothing can be written there, beside the fingerprints.
func (v Vault) Remember(ctx context.Context, file string, value []byte) error {
	if len(value) == 0 {
		return nil
	}
	path, key, err := v.key(file)
	if err == nil {
		line := redact.KnownLine{Key: path}
		secret.EachForm(value, func(form []byte) { line.Marks = append(line.Marks, redact.Mark(key, form)...) })
		err = remember(ctx, file, line)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot note which value records must not show")
	}
	return nil
}

func remember(ctx context.Context, file string, line redact.KnownLine) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	open, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer open.Close() // which gives up the lock; a failed write was reported
	if err := lock.File(ctx, open); err != nil {
		return err
	}
	data, err := io.ReadAll(open)
	if err != nil || bytes.Contains(data, text) {
		return err
	}
	text = append(text, '\n')
	if len(data) > 0 && data[len(data)-1] != '\n' { // torn by a crash
		text = append([]byte{'\n'}, text...)
	}
	if _, err := open.Write(text); err != nil || len(data) < knownFull {
		return err
	}
	// Another process may have moved it while this one waited for the lock.
	ours, err := open.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(file); err != nil || !os.SameFile(ours, now) {
		return nil // the write is in the file that moved
	}
	return os.Rename(file, file+redact.KnownBefore)
}

// key reads the key of fingerprints, or makes it.
func (v Vault) key(file string) (path string, key []byte, err error) {
	path = filepath.Join(v.Dir, keyFile)
	if key, err = readKey(path); err == nil {
		return path, key, nil
	}
	made := make([]byte, redact.KeySize)
	_, _ = rand.Read(made) // it never fails
	if errors.Is(err, fs.ErrNotExist) {
		if err := v.write(path+".new", made); err == nil {
			// A link does not replace the key of another process.
			err = os.Link(path+".new", path)
			err = errors.Join(ignoreExist(err), os.Remove(path+".new"))
			if key, readErr := readKey(path); err == nil || readErr == nil {
				return path, key, readErr
			}
		}
	}
	beside := file + ".key"
	open, err := os.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = open.Write(made)
		err = errors.Join(err, open.Close())
	}
	if err = ignoreExist(err); err != nil {
		return "", nil, err
	}
	key, err = readKey(beside)
	return beside, key, err
}

func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func readKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err == nil && len(key) != redact.KeySize {
		err = fault.New(fault.Unavailable, "%s has %d bytes and not %d", path, len(key), redact.KeySize)
	}
	return key, err
}
