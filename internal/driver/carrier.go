package driver

import (
	"context"
	"io"
)

// Carrier is also implemented by drivers of places whose files are
// sandbox.FilesCarried. Without it no change of a place can become a commit,
// and the engine refuses every operation that would lose by that. A sandbox
// then begins with the host's upper directory and home: Acquire takes them
// along the first time, and nothing is read from them afterwards.
type Carrier interface {
	// Files asks the place of a lease about its files. It does nothing by itself;
	// the methods of its result fail with ErrUnreachable or ErrMachineLost, as
	// Attach does.
	Files(lease Lease) Files

	// Forget removes what the machine keeps of a sandbox that does not run and
	// is deleted. It is not an error if that is gone already.
	Forget(ctx context.Context, lease Lease) error
}

// Retainer is also implemented by Carriers whose machines keep the files of a deleted
// sandbox where they are until Forget. Its directory is in the trash meanwhile, and so
// is the StateDir of its leases ([Root]). Once that is back, Acquire finds the files.
type Retainer interface {
	// Room says how much the disk with the files of a sandbox has left. It starts no
	// machine and changes nothing.
	Room(ctx context.Context, lease Lease) (Room, error)
}

// Room is what a disk has left. A total of 0 is not known.
type Room struct {
	Free, Total        int64 // bytes
	FreeInodes, Inodes uint64
}

// Files answer the engine's questions, several at once, any number of times. No
// answer is trusted: package workspace/feed defines what the streams hold and
// checks it.
type Files interface {
	// List streams the differences from the layers (feed.Write).
	List(ctx context.Context) (io.ReadCloser, error)

	// Content streams one file, by its path in a listing (feed.WriteFile).
	Content(ctx context.Context, path string) (io.ReadCloser, error)

	// Refs returns the branches and the stash of the git inside: name to commit.
	Refs(ctx context.Context) (map[string]string, error)

	// Size is how much the changes and the home take in the machine, in bytes.
	Size(ctx context.Context) (changes, home int64, err error)
}

// PruningFiles are Files that can leave out what git ignores, so that it costs
// nothing. The rules of Pruner in package workspace/feed apply here.
type PruningFiles interface {
	Files

	// ListBut is List without the content of directories that git ignores, by texts
	// (of core.excludesFile, info/exclude and the base's topmost .gitignore) and by
	// each .gitignore that is met.
	ListBut(ctx context.Context, fold bool, texts [][]byte) (io.ReadCloser, error)

	// ListBelow streams one directory that was left out (feed.WriteBelow).
	ListBelow(ctx context.Context, path string) (io.ReadCloser, error)
}

// Brancher is a Carrier whose forks begin in their machine. Rebranch moves the
// git inside a fork, which has not run yet, from the branch from to the branch
// to. A git on any other branch stays as it is.
type Brancher interface {
	Rebranch(ctx context.Context, lease Lease, from, to string) error
}
