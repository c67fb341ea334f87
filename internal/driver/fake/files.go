package fake

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// below cuts a directory off a path inside.
func below(path, dir string) (name string, ok bool) {
	if path == dir {
		return ".", true
	}
	return strings.CutPrefix(path, dir+"/")
}

// absolute is a path of a request: relative ones begin in the workspace.
func (p *place) absolute(path []byte) string {
	if filepath.IsAbs(string(path)) {
		return string(path)
	}
	return filepath.Join(p.spec.Workspace.Path, string(path))
}

// mounted finds the host's path of a mounted file.
func (p *place) mounted(path string) (string, bool) {
	for _, mount := range p.spec.Mounts {
		if name, ok := below(path, mount.Target); ok {
			return filepath.Join(mount.Source, name), true
		}
	}
	return "", false
}

// shared reports whether path lies in a mount that can be written.
func (p *place) shared(path string) bool {
	for _, mount := range p.spec.Mounts {
		if _, ok := below(path, mount.Target); ok && mount.Writable {
			return true
		}
	}
	return false
}

// layered lists where a file of the workspace can be, topmost first.
func (p *place) layered(name string) []string {
	layers := slices.Clone(p.spec.Workspace.Layers)
	if p.driver.has(ReversesLayers) {
		slices.Reverse(layers)
	}
	paths := []string{filepath.Join(p.upper(), name)}
	for _, layer := range layers {
		paths = append(paths, filepath.Join(layer, name))
	}
	return paths
}

// setDeleted does what an overlay does by making or removing a whiteout.
func (p *place) setDeleted(name string, deleted bool) {
	m := p.driver.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	upper := p.spec.Workspace.Upper
	if m.deleted[upper] == nil {
		m.deleted[upper] = pathSet{}
	}
	m.deleted[upper][name] = deleted
}

func (p *place) isDeleted(name string) bool {
	m := p.driver.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deleted[p.spec.Workspace.Upper][name]
}

func (p *place) readFile(path string) ([]byte, error) {
	missing := fault.New(fault.NotFound, "cannot read %q: no such file", path)
	proc := strings.HasPrefix(path, "/proc/")
	if p.driver.has(ShowsTheHost) && !proc || p.driver.has(ShowsProcesses) && proc {
		if content, err := os.ReadFile(path); err == nil {
			return content, nil
		}
	}
	if source, ok := p.mounted(path); ok {
		return read(source, missing)
	}
	if content, ok := p.lent.read(path); ok {
		return content, nil
	}
	if name, ok := below(path, p.spec.Home); ok {
		return read(filepath.Join(p.home(), name), missing)
	}
	name, ok := below(path, p.spec.Workspace.Path)
	if !ok || p.isDeleted(name) || p.driver.has(NeedsLayers) && len(p.spec.Workspace.Layers) == 0 && p.spec.Workspace.Live == nil {
		return nil, missing
	}
	for _, at := range p.layered(name) {
		if content, err := os.ReadFile(at); err == nil {
			return content, nil
		}
	}
	return nil, missing
}

func read(path string, missing error) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, missing
	}
	return content, nil
}

func (p *place) writeFile(path string, content []byte) error {
	if source, ok := p.mounted(path); ok {
		if p.driver.has(MountsWritable) || p.shared(path) && !p.driver.has(SharesNothing) {
			return write(source, content)
		}
		return fault.New(fault.Denied, "cannot write %q: it is read-only", path)
	}
	if name, ok := below(path, p.spec.Home); ok {
		return write(filepath.Join(p.home(), name), content)
	}
	name, ok := below(path, p.spec.Workspace.Path)
	if !ok {
		return fault.New(fault.Denied, "cannot write %q: it is read-only", path)
	}
	if live := p.spec.Workspace.Live; live != nil && !p.driver.has(ProtectsNothing) {
		for _, kept := range live.ReadOnly {
			if _, ok := below(name, kept); ok {
				return fault.New(fault.Denied, "cannot write %q: it is read-only", path)
			}
		}
	}
	p.setDeleted(name, false)
	paths := p.layered(name)
	if p.driver.has(WritesIntoLayers) {
		for _, at := range paths[1:] {
			if _, err := os.Stat(at); err == nil {
				if err := write(at, content); err != nil {
					return err
				}
			}
		}
	}
	return write(paths[0], content)
}

func write(path string, content []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		return fault.New(fault.Unavailable, "cannot write: %v", err)
	}
	return nil
}

// remove is rm of one file in the workspace.
func (p *place) remove(path string) error {
	name, ok := below(path, p.spec.Workspace.Path)
	if !ok {
		return fault.New(fault.Denied, "cannot remove %q: it is read-only", path)
	}
	if _, err := p.readFile(path); err != nil {
		return err
	}
	p.setDeleted(name, true)
	if err := os.Remove(filepath.Join(p.upper(), name)); err != nil && !os.IsNotExist(err) {
		return fault.New(fault.Unavailable, "cannot remove: %v", err)
	}
	return nil
}
