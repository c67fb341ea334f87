package use

import (
	"context"
	"iter"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Audit is the record of past and present events.
type Audit interface {
	Cycles(ctx context.Context, dir, name string) ([]sandbox.Cycle, error)
	Events(ctx context.Context, request engine.EventsRequest, each func(sandbox.Event) error) error
	Watch(context.Context, engine.WatchRequest, func(engine.Activity) error) error
	NewCommandLog(ctx context.Context, info engine.Info, dir string, env []string) (*engine.CommandLog, error)
	Audit(context.Context, engine.AuditQuery) (iter.Seq2[engine.AuditEntry, error], error)
	VerifyAudit(context.Context) (engine.Verification, error)
	Samples(ctx context.Context, dir string, all, disk bool) ([]engine.Sample, error)
	Cost(context.Context, engine.CostRequest) (engine.CostReport, error)
	Signatures(ctx context.Context, dir, name string) ([]engine.Signature, error)
	Approve(context.Context, engine.ApproveRequest) error
}
