package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima"
	"github.com/litterbox-sandbox/litterbox/internal/driver/lima/limactl"
)

// Where Lima is not installed, a create fails once: what it made is cleared away
// without Lima.
func TestLimaIsNotInstalled(t *testing.T) {
	stateDir := filepath.Join(t.TempDir(), "sandboxes", "one")
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := lima.NewOwn(lima.Options{Env: []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}})
	if _, err := d.Acquire(t.Context(), driver.Spec{SandboxID: "one", Name: "one", StateDir: stateDir}); !errors.Is(err, limactl.ErrNotInstalled) {
		t.Fatalf("Acquire: %v", err)
	}
	lease := driver.Lease{ID: "one", SandboxID: "one", StateDir: stateDir}
	_, err := d.Recover(t.Context(), lease)
	if err = errors.Join(err, d.Destroy(t.Context(), lease, true), d.Forget(t.Context(), lease)); err != nil {
		t.Errorf("clearing away says %v", err)
	}
}
