// Package use groups the engine's use cases, so that a frontend says in a few words
// what it needs and a test's fake stands in for just that. One kind of frontend
// takes a group whole: what agents may do is separate from what only the human
// does.
//
// To add a use case: its method in package engine, its line in one group here. A
// frontend that takes the group has it then; a test of package arch finds one
// that is in no group or in two.
package use

import (
	"context"
	"io"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Work is work in sandboxes, for agents and humans.
type Work interface {
	Create(context.Context, engine.CreateRequest) (engine.Creation, error)
	List(ctx context.Context, dir string, all bool) ([]engine.Info, error)
	Status(ctx context.Context, dir, name string) (engine.Status, error)
	FindProgram(ctx context.Context, place engine.Place, program string, allowDegraded bool) (bool, error)
	Exec(context.Context, engine.ExecRequest) (engine.ExecResult, error)
	Refused(context.Context, engine.Place, time.Time) ([]engine.Refusal, error)
	Write(context.Context, engine.WriteRequest) (it *sandbox.Iteration, notes []string, err error)
	Milestone(ctx context.Context, dir, name, message string) (engine.Milestoned, error)
	Update(context.Context, engine.UpdateRequest) (engine.Updated, error)
	Log(ctx context.Context, dir, name string) ([]sandbox.Iteration, error)
	Diff(context.Context, engine.DiffRequest) (int, error)
}

// Views is how agents look at files: guarded, a page at a time.
type Views interface {
	Show(context.Context, engine.ShowRequest) (engine.FileView, error)
	Find(context.Context, engine.Place, engine.FindRequest) ([]engine.FileEntry, engine.FilesFound, error)
	Search(context.Context, engine.Place, engine.FindRequest) ([]engine.FileMatch, engine.FilesFound, error)
}

// Sessions is how an agent holds its sandbox, and how its calls are recorded.
type Sessions interface {
	Begin(context.Context, engine.Actor, engine.Action) (context.Context, *engine.Call, error)
	Hold(ctx context.Context, dir, name string, who engine.Actor) (engine.Hold, []string, error)
	Renew(context.Context, engine.Hold) error
	Release(context.Context, engine.Hold) error
}

// Doors serves ssh connections besides commands.
type Doors interface {
	ServeFiles(context.Context, engine.FilesRequest) (*sandbox.Iteration, []string, error)
	DialInside(context.Context, engine.Place, uint16) (engine.Inside, error)
	Editors
}

// Editors accompanies an editor whose server works inside.
type Editors interface {
	AccompanyEditors(ctx context.Context, place engine.Place, who engine.Actor, atWork func() bool)
}

// Files is the human's access to files of sandboxes.
type Files interface {
	Within(dir string) string
	Refs(ctx context.Context, dir string) ([]string, error)
	Read(ctx context.Context, dir, name, path string, w io.Writer) error
	Copy(context.Context, engine.CopyRequest) (it *sandbox.Iteration, notes []string, err error)
	Tree(ctx context.Context, dir, name, below string) ([]string, error)
	Sync(context.Context, engine.SyncRequest) (engine.SyncResult, *sandbox.Iteration, error)
	SyncBack(context.Context, engine.SyncBackRequest) (engine.SyncResult, error)
	Glance(context.Context, engine.Place) (engine.Glance, error)
	AwaitChange(ctx context.Context, place engine.Place, since engine.Glance, most time.Duration) error
}

// Landing brings work back to the human's checkout.
type Landing interface {
	Merge(context.Context, engine.MergeRequest) (engine.MergeResult, error)
	Unmerged(ctx context.Context, info engine.Info) (int, error)
	Branches(ctx context.Context, dir, name string) ([]engine.InnerBranch, error)
	TakeBranch(ctx context.Context, request engine.TakeBranchRequest) (engine.TakenBranch, error)
	Path(ctx context.Context, dir, name string) (string, error)
	DiffTool(context.Context, engine.DiffRequest) (int, error)
	Browse(context.Context, engine.BrowseRequest) (engine.Browsed, error)
	BrowseFile(context.Context, engine.BrowseRequest, io.Writer) error
	BrowseCopy(ctx context.Context, r engine.BrowseRequest, look func(root, path string) error) error
	GitCommand(ctx context.Context, dir, which string) (string, error)
}

// Lives is the life of sandboxes besides their work.
type Lives interface {
	Exists(ctx context.Context, dir, name string) (bool, error)
	Spawn(context.Context, engine.SpawnRequest) ([]engine.Spawned, error)
	Start(ctx context.Context, dir, name string, allowDegraded bool) (engine.StartResult, error)
	Stop(context.Context, engine.StopRequest) (engine.StopResult, error)
	Pause(context.Context, engine.PauseRequest) ([]engine.PauseResult, error)
	Resume(context.Context, engine.PauseRequest) ([]engine.PauseResult, error)
	Rename(context.Context, engine.RenameRequest) (engine.Renamed, error)
	Install(context.Context, engine.InstallRequest) (engine.Installation, error)
	Limits(context.Context, engine.LimitsRequest) (engine.Limits, error)
	Delete(context.Context, engine.DeleteRequest) (engine.DeleteResult, error)
	Trash(ctx context.Context, dir string, all bool) ([]engine.Trashed, error)
	Restore(ctx context.Context, dir, name string) (restored engine.Restored, notes []string, err error)
	EmptyTrash(context.Context, engine.EmptyRequest) ([]engine.Trashed, error)
}
