package stage

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// frozenLayers returns the frozen layers as overlay can use them. On disk they
// belong to the sandbox that wrote them: this one, or the one it is a fork of,
// whose id is shifted to this one's.
func (a assembly) frozenLayers(layers []string, name string) ([]string, error) {
	if a.users == nil {
		return layers, nil
	}
	usable := make([]string, len(layers))
	for n, layer := range layers {
		var st unix.Stat_t
		if err := unix.Lstat(layer, &st); err != nil {
			return nil, fmt.Errorf("cannot look at the layer %q: %w", layer, err)
		}
		if int(st.Uid) == a.config.Shift {
			usable[n] = layer
			continue
		}
		users, err := a.owners.of(layer)
		if err != nil {
			return nil, fmt.Errorf("cannot find who wrote the layer %q: %w", layer, err)
		}
		mounted, err := a.shifted([]string{layer}, users, fmt.Sprintf("%s-%d", name, n))
		if err != nil {
			return nil, err
		}
		usable[n] = mounted[0]
	}
	return usable, nil
}

// upper is the part of an overlay's options that names the writable
// directories, below the sandbox's own.
func (a assembly) upper(name, work string) string {
	return fmt.Sprintf("upperdir=%s,workdir=%s",
		escapeOption(filepath.Join(a.config.StateDir, name)), escapeOption(filepath.Join(a.config.StateDir, work)))
}
