package use

import (
	"context"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// Network decides what may leave sandboxes. Agents have none of it.
type Network interface {
	Network(ctx context.Context, dir, name string) (engine.Network, error)
	FollowNetwork(ctx context.Context, dir, name string, report func(engine.Observation)) error
	SuggestNetwork(ctx context.Context, dir, name string) ([]engine.Suggestion, error)
	ExplainNetwork(ctx context.Context, dir, name, destination string) (engine.Explanation, error)
	ChangePolicy(context.Context, engine.PolicyRequest) (engine.Network, error)
	Presets(context.Context) []engine.Preset
}
