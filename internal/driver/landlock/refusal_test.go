//go:build linux

package landlock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/landlock"
)

// The tier refuses what it cannot do before anything is made.
func TestRefusesWhatNeedsNamespaces(t *testing.T) {
	d := landlock.Driver{}
	if !d.Capabilities().Isolation[0].Available {
		t.Skip(d.Capabilities().Isolation[0].Missing)
	}
	for name, change := range map[string]func(*driver.Spec){
		"an image":        func(s *driver.Spec) { s.Base = &driver.Base{} },
		"nesting":         func(s *driver.Spec) { s.Nested = true },
		"layers":          func(s *driver.Spec) { s.Workspace.Layers = []string{"/"} },
		"a package cache": func(s *driver.Spec) { s.Caches = []driver.Cache{{Name: "go"}} },
		"a mount":         func(s *driver.Spec) { s.Mounts = []driver.Mount{{Source: "/usr", Target: "/elsewhere"}} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			spec := driver.Spec{SandboxID: "refused", StateDir: dir}
			change(&spec)
			if _, err := d.Acquire(t.Context(), spec); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("Acquire answers %v, want ErrUnsupported", err)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Error("a refused place has left its directory")
			}
		})
	}
}
