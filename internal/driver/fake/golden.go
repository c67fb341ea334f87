package fake

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
)

// kept is a golden: its files by their paths in an archive.
type kept struct {
	id    string
	files tree
}

// goldens reports whether the fake declares them.
func (d Driver) goldens() bool { return !d.options.Minimal && !d.has(PretendsToKeep) }

// KeepGolden implements driver.GoldenKeeper.
func (d Driver) KeepGolden(_ context.Context, from, golden driver.Lease, paths []string) (driver.Snapshot, error) {
	if !d.goldens() {
		return driver.Snapshot{}, d.refuse(PretendsToKeep)
	}
	m := d.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	upper, err := readTree(d.upperOf(m.known[from.SandboxID]))
	if err != nil {
		return driver.Snapshot{}, mountFailed(err)
	}
	home, err := readTree(filepath.Join(from.StateDir, "home"))
	if err != nil {
		return driver.Snapshot{}, mountFailed(err)
	}
	m.serial++
	one := kept{id: strconv.Itoa(m.serial), files: tree{}}
	for name, content := range home {
		one.files["home/"+name] = content
	}
	for name, content := range upper {
		if slices.Contains(paths, name) || d.has(KeepsTooMuch) {
			one.files["below/"+name] = content
		}
	}
	m.goldens[golden.StateDir] = one
	return driver.Snapshot{ID: one.id}, nil
}

// golden finds one. The caller holds the machine.
func (m *Machine) golden(lease driver.Lease, id string) (kept, error) {
	one, has := m.goldens[lease.StateDir]
	if !has || one.id != id {
		return kept{}, driver.ErrNoSnapshot
	}
	return one, nil
}

// ReadGolden implements driver.GoldenKeeper.
func (d Driver) ReadGolden(_ context.Context, golden driver.Lease, id string) (io.ReadCloser, error) {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	one, err := d.machine.golden(golden, id)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(one.files)) {
		err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(one.files[name])), Mode: 0o644})
		if err == nil {
			_, err = archive.Write(one.files[name])
		}
		if err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&out), archive.Close()
}

// WriteGolden implements driver.GoldenKeeper.
func (d Driver) WriteGolden(_ context.Context, golden driver.Lease, archive io.Reader) (driver.Snapshot, error) {
	if !d.goldens() {
		return driver.Snapshot{}, d.refuse(PretendsToKeep)
	}
	files := tree{}
	for in := tar.NewReader(archive); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		content, failed := io.ReadAll(in)
		if err = errors.Join(err, failed); err != nil {
			if d.has(TakesHalfGoldens) {
				break
			}
			return driver.Snapshot{}, err
		}
		if header.Typeflag == tar.TypeReg {
			files[header.Name] = content
		}
	}
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	d.machine.serial++
	one := kept{id: strconv.Itoa(d.machine.serial), files: files}
	d.machine.goldens[golden.StateDir] = one
	return driver.Snapshot{ID: one.id}, nil
}

// BeginWith implements driver.GoldenKeeper. The files lie where the sandbox writes.
func (d Driver) BeginWith(golden driver.Lease, id string, edits []driver.Edit, to driver.Lease) error {
	m := d.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	one, err := m.golden(golden, id)
	if err != nil {
		return err
	}
	m.begun[to.SandboxID] = id
	below, home := tree{}, tree{}
	for name, content := range one.files {
		for _, edit := range edits {
			if edit.Path == name {
				content = bytes.ReplaceAll(content, []byte(edit.Old), []byte(edit.New))
			}
		}
		if rest, is := strings.CutPrefix(name, "home/"); is {
			home[rest] = content
		} else {
			below[strings.TrimPrefix(name, "below/")] = content
		}
	}
	for root, content := range map[string]tree{filepath.Join(to.StateDir, "upper"): below, filepath.Join(to.StateDir, "home"): home} {
		if err := writeTree(root, content); err != nil {
			return mountFailed(err)
		}
	}
	return nil
}

// BegunWith implements driver.GoldenKeeper.
func (d Driver) BegunWith(lease driver.Lease) string {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	return d.machine.begun[lease.SandboxID]
}

// DropGolden implements driver.GoldenKeeper.
func (d Driver) DropGolden(_ context.Context, golden driver.Lease) error {
	d.machine.mu.Lock()
	defer d.machine.mu.Unlock()
	delete(d.machine.goldens, golden.StateDir)
	return nil
}
