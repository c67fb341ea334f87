package engine

import (
	"context"
	"net"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/watch"
)

// WatchRequest says what to watch.
type WatchRequest struct {
	Dir      string // with All not set: any directory of the repository
	All      bool   // of all repositories
	Name     string // one sandbox only; it need not exist yet
	Since    time.Time
	NoOutput bool
	NoFollow bool // what there is, with Since, and no more
}

// Activity is one thing that a watcher sees.
type Activity = watch.Activity

// Watch hands activities to each, by time, until ctx ends, which is not an error.
// Without Since it begins with the state of what runs. An error of each ends it.
// New sandboxes are watched too. Watchers of one engine share the readers of the
// sources.
func (e *Engine) Watch(ctx context.Context, request WatchRequest, each func(Activity) error) error {
	wanted := watch.Request{Since: request.Since, NoOutput: request.NoOutput, NoFollow: request.NoFollow, Secrets: e.secretsOf(ctx), Note: e.Note}
	var err error
	if !request.All {
		if wanted.GitDir, err = gitDirOf(ctx, request.Dir); err != nil {
			return err
		}
	}
	if request.Name != "" {
		if wanted.Name, err = sandbox.Slug(request.Name); err != nil {
			return err
		}
		if !request.All && !request.NoFollow {
			e.sayMissing(ctx, request.Dir, wanted.Name)
		}
	}
	return e.watch.Watch(ctx, wanted, each)
}

// newHub makes the hub that the watchers of an engine share.
func (e *Engine) newHub() *watch.Hub {
	return &watch.Hub{Sources: watch.Sources{
		Store: e.Store, Log: e.auditLog(),
		Dial: func(ctx context.Context, record *sandbox.Sandbox) (net.Conn, error) {
			return e.place(record, nil, nil).dial(ctx)
		},
		State: func(ctx context.Context, record *sandbox.Sandbox) (sandbox.State, *sandbox.Agent) {
			state, _ := e.state(ctx, record)
			return state, e.agentOf(record)
		},
	}}
}
