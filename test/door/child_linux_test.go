package door_test

import (
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
	"github.com/litterbox-sandbox/litterbox/test/uses"
)

// A sandbox whose files are on another machine has the same doors.
func TestDoorsOfAnotherMachine(t *testing.T) {
	t.Parallel()
	program.Need(t, "busybox")
	h := built.New(t)
	h.Put(filepath.Join(h.Home, ".config/litterbox/config.toml"), "driver = \"child\"\n")
	uses.Doors(t, h)
}
