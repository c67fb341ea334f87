package remote_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// absent is a machine that cannot be had here.
type absent struct{ why error }

func (absent) Name() string                                       { return "absent" }
func (a absent) Ensure(context.Context) error                     { return a.why }
func (a absent) Dial(context.Context) (io.ReadWriteCloser, error) { return nil, a.why }

func driverOf(m remote.Machine) *remote.Driver {
	return remote.New("absent", sandbox.Traits{}, func(string) remote.Machine { return m })
}

// What has begun in no machine is cleared away without one; what may have begun is not.
func TestDestroyWithoutAMachine(t *testing.T) {
	why := errors.New("no such program")
	d := driverOf(absent{why})
	lease := driver.Lease{ID: "one", SandboxID: "one", StateDir: t.TempDir()}
	if err := d.Destroy(t.Context(), lease, true); err != nil {
		t.Errorf("what has begun nowhere: %v", err)
	}
	if _, err := d.Recover(t.Context(), lease); err != nil {
		t.Errorf("what has begun nowhere is recovered: %v", err)
	}
	if err := os.WriteFile(filepath.Join(lease.StateDir, remote.File), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Destroy(t.Context(), lease, true); !errors.Is(err, why) {
		t.Errorf("what may have begun: %v, want %v", err, why)
	}
}
