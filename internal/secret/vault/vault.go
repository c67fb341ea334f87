// Package vault stores values of secrets on the host: in the system's keyring,
// or in files that are encrypted with age. It remembers the names of what was
// stored, because a keyring does not list what one program has put there.
//
// What the files protect: a copy of them without the identity beside them, as in
// a backup of one directory, is worth nothing. A process that can read the user's
// whole home can read them, as with any key that is used while no one is there to
// type a password. Start reading at [Vault].
package vault

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/ownership"
	"github.com/litterbox-sandbox/litterbox/internal/secret"
)

// Vault keeps its files in Dir, which is made when something is first stored.
type Vault struct{ Dir string }

// Entry is a stored value, without the value.
type Entry struct {
	Name string      `json:"name"`
	Kind secret.Kind `json:"kind"` // secret.Keyring or secret.Age
	Set  time.Time   `json:"set"`
}

// Place is where new values go: the keyring where one answers, else files.
func (v Vault) Place(ctx context.Context) secret.Kind {
	if _, err := keyringGet(ctx, probe); err == nil || errors.Is(err, errNoEntry) {
		return secret.Keyring
	}
	return secret.Age
}

// probe is looked up to see whether a keyring answers.
const probe = "litterbox-probe"

var errNoEntry = errors.New("there is no such entry")

// Set stores a value, replacing an earlier one.
func (v Vault) Set(ctx context.Context, kind secret.Kind, name string, value []byte) error {
	if !secret.ValidEntry(name) {
		return fault.New(fault.Invalid, "cannot store a secret as %q: a name has letters, digits, dashes, dots and underscores", name)
	}
	if err := secret.CheckValue(value); err != nil {
		return err
	}
	var err error
	if kind == secret.Keyring {
		err = keyringSet(ctx, name, value)
	} else {
		err = v.encrypt(name, value)
	}
	if err != nil {
		return fault.Wrap("", err, "cannot store the secret %s:%s", kind, name)
	}
	return v.remember(func(entries []Entry) []Entry {
		return append(without(entries, kind, name), Entry{Name: name, Kind: kind, Set: time.Now().UTC().Truncate(time.Second)})
	})
}

// Get reads a value. The receiver wipes it.
func (v Vault) Get(ctx context.Context, kind secret.Kind, name string) ([]byte, error) {
	var value []byte
	var err error
	if kind == secret.Keyring {
		value, err = keyringGet(ctx, name)
	} else {
		value, err = v.decrypt(name)
	}
	if errors.Is(err, errNoEntry) {
		missing := fault.New(fault.NotFound, "there is no %s:%s", kind, name)
		if kind == secret.Age { // its default place is a keyring
			return nil, missing.WithHint("litterbox secrets set %s --age", name)
		}
		return nil, missing.WithHint("litterbox secrets set %s", name)
	}
	return value, err
}

// Remove forgets a value. A missing one is secret.NotFound.
func (v Vault) Remove(ctx context.Context, kind secret.Kind, name string) error {
	var err error
	if kind == secret.Keyring {
		err = keyringRemove(ctx, name)
	} else if err = os.Remove(v.file(name)); errors.Is(err, fs.ErrNotExist) {
		err = errNoEntry
	}
	if err != nil && !errors.Is(err, errNoEntry) {
		return fault.Wrap("", err, "cannot remove the secret %s:%s", kind, name)
	}
	missing := err
	if err := v.remember(func(entries []Entry) []Entry { return without(entries, kind, name) }); err != nil {
		return err
	}
	if missing != nil {
		return fault.New(fault.NotFound, "there is no %s:%s", kind, name).WithHint("litterbox secrets list")
	}
	return nil
}

func without(entries []Entry, kind secret.Kind, name string) []Entry {
	return slices.DeleteFunc(entries, func(e Entry) bool { return e.Kind == kind && e.Name == name })
}

func (v Vault) index() string { return filepath.Join(v.Dir, "entries.json") }

// List gives the stored entries, by name.
func (v Vault) List() ([]Entry, error) {
	data, err := os.ReadFile(v.index())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []Entry
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot read the names of stored secrets in %s", v.index())
	}
	return entries, nil
}

// remember changes the list of names.
func (v Vault) remember(change func([]Entry) []Entry) error {
	entries, err := v.List()
	if err != nil {
		return err
	}
	entries = change(entries)
	slices.SortFunc(entries, func(a, b Entry) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(string(a.Kind), string(b.Kind))
	})
	data, err := json.MarshalIndent(entries, "", "  ")
	if err == nil {
		err = v.write(v.index(), append(data, '\n'))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the names of stored secrets")
	}
	return nil
}

// write replaces a file in one step, readable by its owner alone.
func (v Vault) write(file string, data []byte) error {
	if err := os.MkdirAll(v.Dir, 0o700); err != nil {
		return err
	}
	// Root with another user's HOME must not leave values there.
	if err := ownership.Check(v.Dir); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(v.Dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temporary.Name()))
	}
	return err
}
