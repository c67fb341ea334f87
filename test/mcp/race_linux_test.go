//go:build race

package mcp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Eight agents at once, with a server that watches for data races: it ends with
// an error if there was one. Programs inside stay ordinary; the filter of
// system calls does not know what watching needs.
func TestEightAgentsUnderRace(t *testing.T) {
	t.Parallel()
	if os.Getenv("LITTERBOX_TEST_AGAIN") != "" {
		t.Skip("the server's goroutines do not depend on who runs the tests, and were watched as another user a moment ago")
	}
	h := built.New(t)
	watched, release := filepath.Join(h.Dir, "watched"), filepath.Join(h.Dir, "release")
	link(t, watched, "CGO_ENABLED=1", "-race")
	build(t, h.Program("litterbox"), watched, release)
	h.Env = append(h.Env, "GORACE=halt_on_error=1")
	eightAgents(t, h, func(args ...string) *exec.Cmd {
		cmd := command(h, args...)
		cmd.Path = release
		return cmd
	})
}
