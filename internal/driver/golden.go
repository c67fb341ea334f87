package driver

import (
	"context"
	"io"
)

// GoldenKeeper is also implemented by Carriers whose machines keep goldens: files that
// new sandboxes begin with. It counts for drivers that declare Capabilities.Goldens; others
// answer ErrUnsupported. The lease of a golden has a StateDir of its own, as deep as
// that of a sandbox, in which the driver writes where the golden is.
type GoldenKeeper interface {
	// KeepGolden makes a golden of a sandbox that has begun and does not run: HOME,
	// and some paths of its workspace. The result has an id and the size. The golden
	// is there whole or not at all; DropGolden clears away what a crash has left.
	KeepGolden(ctx context.Context, from, golden Lease, paths []string) (Snapshot, error)

	// ReadGolden streams the files of a golden as a tar archive, as package frozen
	// packs them. Nothing of it is trusted.
	ReadGolden(ctx context.Context, golden Lease, id string) (io.ReadCloser, error)

	// WriteGolden makes a golden of the files of a tar archive, as ReadGolden streams
	// them, also those of another machine. It fails with what the reader fails with.
	// The golden is there whole or not at all, as by KeepGolden. A driver that cannot
	// tell where it would be answers ErrUnsupported.
	WriteGolden(ctx context.Context, golden Lease, archive io.Reader) (Snapshot, error)

	// BeginWith has a sandbox, which was never acquired, begin with a golden: its first
	// Acquire takes files of the host along, which lie above those of the golden. The
	// layers of its workspace lie above the golden's part of the workspace. Edits change
	// files of the golden for this sandbox. If the golden is gone, Acquire fails with
	// ErrNoSnapshot. It makes no requests.
	BeginWith(golden Lease, id string, edits []Edit, to Lease) error

	// BegunWith returns the id of the golden that a sandbox began with; empty: none.
	BegunWith(lease Lease) (id string)

	// DropGolden removes a golden. Sandboxes that began with it keep its files. A
	// missing one is no error.
	DropGolden(ctx context.Context, golden Lease) error
}

// Edit replaces a text in a file of a golden, whose path is that in an archive.
type Edit struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}
