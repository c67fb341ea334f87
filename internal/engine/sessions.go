package engine

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Session is a client that works in a sandbox now: a command, a shell, a transfer
// of files or an editor. The JSON fields are pinned by golden files.
type Session struct {
	Kind  string    `json:"kind"` // of its cycle, as in Status
	What  string    `json:"what"` // command line, or name of the editor
	Since time.Time `json:"since"`
}

// sessions are those of a sandbox whose clients live; a listing does not fail for
// records that cannot be read.
func (e *Engine) sessions(ctx context.Context, id string, state sandbox.State) []Session {
	sessions := []Session{}
	if state != sandbox.Running && state != sandbox.Paused {
		return sessions
	}
	cycles, err := e.Store.LiveCycles(ctx, id)
	if err != nil {
		return sessions
	}
	for _, cycle := range cycles {
		if process.Alive(cycle.Holder) {
			sessions = append(sessions, Session{Kind: cycle.Kind, What: cycle.Command, Since: cycle.StartedAt})
		}
	}
	return sessions
}
