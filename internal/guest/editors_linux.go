package guest

import (
	"slices"

	"github.com/litterbox-sandbox/litterbox/internal/editor"
	"github.com/litterbox-sandbox/litterbox/internal/guest/proc"
)

// editors lists the names of the editors whose servers run inside, no matter
// what started them.
func editors() []string {
	pids, err := proc.Insiders()
	if err != nil {
		return nil // the list of processes fails too, and says why
	}
	var names []string
	for _, pid := range pids {
		p, ok := readProcess(pid)
		if !ok {
			continue
		}
		if one, ok := editor.Of(commandOf(pid, p.Command)); ok && !slices.Contains(names, one.Name) {
			names = append(names, one.Name)
		}
	}
	slices.Sort(names)
	return names
}
