package program

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
)

// Stack runs a script in a sandbox a number of times, with the number of the
// round as $1, and freezes what it wrote each time into a layer of its own.
func (h *Host) Stack(box string, rounds int, script string) {
	h.Helper()
	for n := range rounds {
		h.Must("exec", box, "--no-commit", "--", "sh", "-ec", script, "sh", fmt.Sprint(n))
		h.Must("stop", box)
		h.Must("snapshot", box)
	}
}

// Layers returns the number of frozen layers that a sandbox stands on.
func (h *Host) Layers(box string) int {
	h.Helper()
	var status struct{ ID string }
	if err := json.Unmarshal([]byte(h.Must("status", box, "--json")), &status); err != nil {
		h.Fatal(err)
	}
	record, err := frozen.Read(filepath.Join(h.State, "litterbox", "sandboxes", status.ID))
	if err != nil {
		h.Fatal(err)
	}
	return len(record.Stack)
}
