package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// A command that writes before the first look at its files has its work committed
// while it runs all the same; earlier changes do not count as its work.
func TestWhatWasThereBeforeACommand(t *testing.T) {
	all := func(string) bool { return false }
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "before"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * ticks)
	began := time.Now()
	if first := hostile.Look(dir, began, all); first.Files != 1 || !seenBefore(first, began).Same(first) {
		t.Errorf("a file from before counts as the command's: %+v", first)
	}
	if err := os.WriteFile(filepath.Join(dir, "written"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if first := hostile.Look(dir, began, all); first.Files != 2 || seenBefore(first, began).Same(first) {
		t.Errorf("a file that a fast command wrote counts as committed: %+v", first)
	}
}
