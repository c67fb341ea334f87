package use

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// Services is programs that keep running, for agents and humans.
type Services interface {
	Service(context.Context, engine.ServiceRequest) (engine.ServiceResult, error)
	ServiceLogs(context.Context, engine.LogRequest) (engine.LogPage, error)
	Ports(ctx context.Context, dir, name string) ([]engine.Port, error)
}

// Serving is the human's use of services.
type Serving interface {
	AwaitServices(ctx context.Context, dir, name string, patience time.Duration) ([]engine.NotReady, error)
	FollowServiceLogs(ctx context.Context, r engine.LogRequest, report func(engine.LogLine) error) error
	OpenPort(ctx context.Context, dir, name, port string) (p engine.Port, notes []string, err error)
}
