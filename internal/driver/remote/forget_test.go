//go:build linux

package remote_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/branch/branchtest"
	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/remote"
	"github.com/litterbox-sandbox/litterbox/internal/git/gittest"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// What an outpost that was killed while it removed a place has left is removed by the
// next request to forget it, also if the record of the place is gone already.
func TestForgetsWhatIsLeft(t *testing.T) {
	repository := gittest.Repository(t)
	gittest.Write(t, repository, "base", "base\n")
	gittest.Shell(t, repository, "git add -A; git commit -qm base")
	box := branchtest.New(t, repository, "box")
	machine := &counted{root: t.TempDir()}
	d := remote.New("counted", sandbox.Traits{Files: sandbox.FilesCarried}, func(string) remote.Machine { return machine })
	state := filepath.Dir(box.Upper)
	lease, err := d.Acquire(t.Context(), driver.Spec{SandboxID: "box", StateDir: state, Workspace: driver.Workspace{Path: "/work", Layers: box.Layers, Upper: box.Upper}})
	if err != nil {
		t.Fatal(err)
	}
	lease.StateDir = state
	there := filepath.Join(machine.root, "sandboxes", "box")
	if err := os.Remove(filepath.Join(there, "place.json")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Forget(t.Context(), lease); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(there); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the rest is there: %v", err)
		}
	}
}
