package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// FromLima takes over the settings of a .lima-sandbox.toml. Those without a key
// of ours become comments.
func FromLima(name string, content []byte) (Draft, error) {
	var file struct {
		Project string         `toml:"project"`
		VM      map[string]any `toml:"vm"`
		Tools   map[string]any `toml:"tools"`
		Claude  map[string]any `toml:"claude"`
		Hooks   map[string]any `toml:"hooks"`
		Sync    map[string]any `toml:"sync"`
		Watch   map[string]any `toml:"watch"`
	}
	if err := toml.Unmarshal(content, &file); err != nil {
		return Draft{}, fault.Wrap(fault.Invalid, err, "cannot read %q", name)
	}
	d := Draft{Found: []string{plain(name)}}
	if cpus, ok := file.VM["cpus"].(int64); ok && cpus > 0 {
		d.CPUs = fmt.Sprint(cpus)
	}
	if memory, ok := file.VM["memory"].(string); ok {
		d.Memory = memory
	}
	for _, hook := range []string{"post_provision", "post_sync"} {
		if command := hookCommand(file.Hooks[hook]); command != "" {
			d.Setup = append(d.Setup, setup{command, "hooks." + hook + " of " + name})
		}
	}
	presets := map[string]string{"nodejs": "preset:npm", "python": "preset:pip", "rust": "preset:cargo", "go": "preset:go"}
	for _, tool := range slices.Sorted(maps.Keys(file.Tools)) {
		if preset := presets[tool]; preset != "" {
			d.Presets = append(d.Presets, preset)
		}
		d.Notes = append(d.Notes, plain(fmt.Sprintf("tools.%s = %v: sandboxes use what is installed on this machine, or in container.base-image", tool, file.Tools[tool])))
	}
	if file.Project != "" {
		d.Notes = append(d.Notes, plain("project = "+file.Project+": sandboxes belong to the repository"))
	}
	for section, set := range map[string]map[string]any{"claude": file.Claude, "sync": file.Sync, "watch": file.Watch} {
		if len(set) > 0 {
			d.Notes = append(d.Notes, "["+section+"] has no key here: "+map[string]string{
				"claude": "litterbox agent run starts agents", "sync": "a sandbox begins with the commit, and its commits come back by merge", "watch": "litterbox watch shows what happens",
			}[section])
		}
	}
	slices.Sort(d.Notes)
	slices.Sort(d.Presets)
	return d, nil
}

// hookCommand returns a hook: a line, or a list of lines.
func hookCommand(value any) string {
	switch value := value.(type) {
	case string:
		return strings.TrimSpace(value)
	case []any:
		var lines []string
		for _, one := range value {
			if line, ok := one.(string); ok {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, " && ")
	}
	return ""
}
