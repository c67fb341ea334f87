package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// Store is the directory of records, one file for each machine. Files are written
// aside and renamed, so that readers need no lock.
type Store struct {
	Dir string
}

// In is the store below a state directory.
func In(root string) Store { return Store{Dir: filepath.Join(root, "machines")} }

const suffix = ".json"

func (s Store) file(name string) string { return filepath.Join(s.Dir, name+suffix) }

// Get reads a machine.
func (s Store) Get(name string) (Machine, error) {
	var m Machine
	if err := CheckName(name); err != nil {
		return m, err
	}
	data, err := os.ReadFile(s.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		err := fault.New(fault.NotFound, "there is no machine %q", name).WithHint("litterbox machine add %s ssh://user@host", name)
		if names := s.Names(); len(names) > 0 {
			err.Text += "; the machines are: " + strings.Join(names, ", ")
		}
		return m, err
	}
	if err == nil {
		err = seal.Decode(data, &m)
	}
	if err == nil && (m.Version != 1 || m.Name != name) {
		err = errors.New("another version of litterbox wrote it")
	}
	if err != nil {
		return m, fault.Wrap(fault.Internal, err, "cannot read the machine %q", name)
	}
	return m, nil
}

// Names lists the machines, in order.
func (s Store) Names() []string {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil // none was added
	}
	var names []string
	for _, entry := range entries {
		name, is := strings.CutSuffix(entry.Name(), suffix)
		if is && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Save writes the record of a machine; a new one must not replace another.
func (s Store) Save(m Machine, fresh bool) error {
	failed := func(err error) error {
		return fault.Wrap(fault.Unavailable, err, "cannot record the machine %q", m.Name)
	}
	if err := CheckName(m.Name); err != nil {
		return err
	}
	data, err := seal.Encode(m)
	if err != nil {
		return failed(err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return failed(err)
	}
	temp, err := os.CreateTemp(s.Dir, ".new-*") // 0600
	if err != nil {
		return failed(err)
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err == nil {
		if fresh {
			if err = os.Link(temp.Name(), s.file(m.Name)); errors.Is(err, fs.ErrExist) {
				return errors.Join(Exists(m.Name), os.Remove(temp.Name()))
			}
		} else {
			err = os.Rename(temp.Name(), s.file(m.Name))
		}
	}
	if fresh || err != nil {
		err = errors.Join(err, os.Remove(temp.Name()))
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// Exists says that a machine of that name is there already.
func Exists(name string) error {
	return fault.New(fault.AlreadyExists, "there is a machine %q already", name).WithHint("litterbox machine remove %s", name)
}

// Remove forgets a machine.
func (s Store) Remove(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.Remove(s.file(name)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot forget the machine %q", name)
	}
	return nil
}
