package driver

import (
	"context"
	"io"
)

// Carrier is what a driver implements besides, of whose places the files are
// sandbox.FilesCarried. Without it nothing of what a place changed can become a
// commit, and the engine refuses whatever would lose by that. The host's upper
// directory and home are then what a sandbox begins with: Acquire takes them
// along the first time, and nothing is read from them afterwards.
type Carrier interface {
	// Files asks the place of a lease about its files. It does nothing by
	// itself; the methods of what it returns fail with ErrUnreachable or
	// ErrMachineLost, as Attach does.
	Files(lease Lease) Files

	// Forget removes what the machine keeps of a sandbox that does not run and
	// is deleted. What is gone already is no error.
	Forget(ctx context.Context, lease Lease) error
}

// Files are asked about by the engine, several questions at once, any number of
// times. Nothing in an answer is believed: package workspace/feed says what the
// streams hold and checks it.
type Files interface {
	// List streams what differs from the layers (feed.Write).
	List(ctx context.Context) (io.ReadCloser, error)

	// Content streams one file, by its path in a listing (feed.WriteFile).
	Content(ctx context.Context, path string) (io.ReadCloser, error)

	// Refs are the branches and the stash of the git inside: name to commit.
	Refs(ctx context.Context) (map[string]string, error)

	// Size is what the changes and the home take in the machine, in bytes.
	Size(ctx context.Context) (changes, home int64, err error)
}
