package git_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
)

// A git that its dead command has left still writes the pin: it is not taken for
// missing.
func TestPinnedAwaitsTheLock(t *testing.T) {
	dir := gittest.Repository(t)
	ctx := gittest.Context(t)
	r := gittest.Open(t, dir)
	const id = "box-00000001"
	if pinned, err := r.Pinned(ctx, id); pinned || err != nil {
		t.Fatalf("without a pin: %t, %v", pinned, err)
	}
	pin := filepath.Join(r.CommonDir, "refs/litterbox/keep", id)
	if err := os.MkdirAll(filepath.Dir(pin), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pin+".lock", []byte(r.Head+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = os.Rename(pin+".lock", pin) }) // as git ends
	if pinned, err := r.Pinned(ctx, id); !pinned || err != nil {
		t.Errorf("while the pin is being written: %t, %v", pinned, err)
	}
}
