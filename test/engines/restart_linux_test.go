package engines_test

import (
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/engine"
)

// An engine that is restarted takes its containers with it, or leaves them running
// (live-restore). Files and commits are there afterwards, and the sandbox goes on.
func TestRestartedEngine(t *testing.T) {
	whole(t)
	for name, live := range map[string]bool{"with its containers": false, "live-restore": true} {
		t.Run(name, func(t *testing.T) {
			e := docker(t, map[string]any{"live-restore": live})
			h := e.host(engine.Shell)
			h.Must("create", "box")
			h.Must("exec", "box", "--", "sh", "-c", "echo new >made")
			e.Stop()
			if got := h.Litterbox("list"); got.Code != 0 {
				t.Errorf("list without an engine: %+v", got)
			}
			e.Start()
			e.want(h.Must("exec", "box", "--", "sh", "-c", "cat made; echo again >again"), "^new$")
			e.want(h.Git("show", "box:again"), "^again$")
			h.Must("stop", "box")
			e.want(h.Must("diff", "box"), `^\+again$`)
			e.machine()
			h.Must("delete", "--force", "--purge", "box")
			e.Must("rm", "--force", e.machine()) // live-restore would leave it
		})
	}
}
