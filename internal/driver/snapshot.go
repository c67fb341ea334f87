package driver

import (
	"context"
	"time"
)

// Snapshots says how much of a place a driver can keep, and how.
type Snapshots struct {
	// Freeze: what the sandbox has written becomes read-only under an id, and it
	// goes on above that. Snapshot, Snapshots, Revert and DeleteSnapshot do their
	// work.
	Freeze bool `json:"freeze"`
	// Live: Snapshot also works on a running place, and Revert if nothing inside
	// holds files. Otherwise they answer ErrHeld there.
	Live bool `json:"live"`
	// Memory: a snapshot of a running place keeps its processes too, and Revert
	// brings them back.
	Memory bool `json:"memory"`
}

// Snapshot is a recorded state of a sandbox's files.
type Snapshot struct {
	ID        string    `json:"id"` // of the driver's making, unique in the sandbox
	Label     string    `json:"label"`
	CreatedAt time.Time `json:"created_at"`
	Memory    bool      `json:"memory,omitempty"` // processes are part of it
	// Layers hold the workspace as it was, topmost first: what was frozen, above
	// the Spec.Workspace.Layers of that moment. They are the layers of the
	// sandbox's workspace from Snapshot and Revert on, and the next Acquire gets
	// them. It is empty when the workspace has none (sandbox.CarriageCopy) and
	// when its files are in another machine.
	Layers []string `json:"layers,omitempty"`
	// Bytes is how much its layers take in the machine that has them; 0 if they
	// are on this host's disk, which anyone can look at.
	Bytes int64 `json:"bytes,omitempty"`
}

// Snapshotter is the part of [Driver] that keeps states and returns to them.
// Every method takes the recorded lease of a sandbox, whether its place runs or
// not, and is serialized with the other calls on that lease. A crash at any
// moment leaves either the state before the call or the one after it; the next
// call of any of them clears away the leftovers.
type Snapshotter interface {
	// Snapshot keeps everything that the sandbox has written in its workspace and
	// HOME, deletions included. Running commands go on, and notice nothing longer
	// than a pause. If a process inside holds files so that they cannot be frozen,
	// the driver copies the new ones. It fails with ErrHeld on a running place if
	// Snapshots.Live is not declared, and with ErrDiskFull.
	Snapshot(ctx context.Context, lease Lease, label string) (Snapshot, error)

	// Snapshots lists the kept snapshots, oldest first.
	Snapshots(ctx context.Context, lease Lease) ([]Snapshot, error)

	// Revert restores workspace and HOME. Everything written since is gone, unless
	// a snapshot of it was taken before; other snapshots stay, later ones too. A
	// running place goes on with the files of the snapshot. A snapshot with memory
	// also brings the place back, under the lease that it had then; a wire to it
	// begins with a new handshake. If a process inside holds files, or
	// Snapshots.Live is not declared, it fails with ErrHeld and changes nothing.
	// An unknown id is ErrNoSnapshot.
	Revert(ctx context.Context, lease Lease, id string) error

	// DeleteSnapshot forgets one. Layers that the sandbox, another snapshot or a
	// fork still needs stay. An unknown id is not an error.
	DeleteSnapshot(ctx context.Context, lease Lease, id string) error

	// Fork gives a second sandbox the files of a snapshot: its next Acquire
	// begins with them. Only ID, SandboxID and StateDir of to count; it was never
	// acquired, and its directories are created. The layers are those of its
	// workspace, as in Snapshot. Both go on independently: neither sees the
	// other's writes, and either can be deleted first.
	Fork(ctx context.Context, from Lease, id string, to Lease) (layers []string, err error)
}

// NoSnapshots is the Snapshotter of a driver that declares none.
type NoSnapshots struct{}

// Snapshot implements Snapshotter.
func (NoSnapshots) Snapshot(context.Context, Lease, string) (Snapshot, error) {
	return Snapshot{}, ErrUnsupported
}

// Snapshots implements Snapshotter.
func (NoSnapshots) Snapshots(context.Context, Lease) ([]Snapshot, error) {
	return nil, ErrUnsupported
}

// Revert implements Snapshotter.
func (NoSnapshots) Revert(context.Context, Lease, string) error { return ErrUnsupported }

// DeleteSnapshot implements Snapshotter.
func (NoSnapshots) DeleteSnapshot(context.Context, Lease, string) error { return ErrUnsupported }

// Fork implements Snapshotter.
func (NoSnapshots) Fork(context.Context, Lease, string, Lease) ([]string, error) {
	return nil, ErrUnsupported
}
