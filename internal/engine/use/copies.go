package use

import (
	"context"
	"io"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// Copies goes back and branches off, for agents and humans.
type Copies interface {
	TakeSnapshot(ctx context.Context, dir, name, label string) (engine.Snapshot, error)
	RestoreSnapshot(context.Context, engine.RestoreRequest) (engine.Reverted, error)
	Rewind(context.Context, engine.RewindRequest) (engine.Reverted, error)
	Fork(context.Context, engine.ForkRequest) (engine.Forked, error)
}

// Snapshots is the human's use of copies.
type Snapshots interface {
	Snapshots(ctx context.Context, dir, name string) ([]engine.Snapshot, error)
	DeleteSnapshots(ctx context.Context, dir, name string, which []string) ([]engine.Snapshot, error)
	Compare(context.Context, engine.CompareRequest) ([]engine.Compared, error)
}

// Goldens is the set of states that sandboxes begin with.
type Goldens interface {
	Build(context.Context, engine.BuildRequest) (engine.Built, error)
	Goldens(ctx context.Context, dir string) ([]engine.Golden, error)
	GoldenOf(ctx context.Context, dir, name string) (engine.Golden, error)
	GoldenLog(ctx context.Context, dir, name string) (*os.File, error)
	DeleteGolden(ctx context.Context, dir, name string) (engine.Golden, error)
	ExportGolden(ctx context.Context, dir, name, driver string, to io.Writer) (engine.Golden, error)
	ImportGolden(context.Context, engine.GoldenImport) (engine.Golden, error)
}
