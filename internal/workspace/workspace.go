package workspace

import (
	"context"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// ErrUnknown says that the files cannot be asked now. It says nothing about
// their content: they may hold work that no commit has.
var ErrUnknown = fault.New(fault.Unavailable, "what its files hold is unknown")

// Unknown returns ErrUnknown with its reason.
func Unknown(why error) error { return fault.Wrap("", ErrUnknown, "%v", why) }

// Workspace is the files of one sandbox. The sandbox may run, and may be hostile:
// nothing read here may be trusted about anything but the sandbox's own branch.
// Every method may be called at any time, several at once, and any number of
// times. All but Base fail with ErrUnknown if the files cannot be asked.
type Workspace interface {
	// Base returns what the changes are compared with.
	Base() Base

	// Exists reports whether the sandbox has files at all. They may have been
	// removed with only the branch left: then there is nothing to commit.
	Exists(ctx context.Context) (bool, error)

	// Changes opens the differences from the base. The caller closes it.
	Changes(ctx context.Context) (Changes, error)

	// Refs returns the branches and the stash of the git inside that the sandbox has
	// written: name to commit. There are at most MaxRefs, and unreadable ones are
	// left out. It fails with an error that is fs.ErrNotExist if there are no files.
	Refs(ctx context.Context) (map[string]string, error)

	// Touched reports whether something was written at or below one of paths,
	// with a few questions and no walk. It may report true needlessly.
	Touched(ctx context.Context, paths ...string) (bool, error)

	// Size returns the space that the files take on their disk. Unreadable
	// files do not count.
	Size(ctx context.Context) (Size, error)

	// Home opens a directory below the sandbox's home, for reading. It fails
	// with an error that is fs.ErrNotExist if there is none.
	Home(ctx context.Context, dir string) (*os.Root, error)

	// Where says where the changed files are, for a human who looks for them.
	Where() string
}

// MaxRefs is how many refs of the git inside are looked at: an agent can make
// any number of them.
const MaxRefs = 200

// Size is the space that a workspace takes, in bytes.
type Size struct {
	Changes int64 // what it holds on top of the base
	Home    int64
}

// Base is what a workspace is compared with: exactly one of its fields is set.
type Base struct {
	Layers []string // directories of this host, topmost first, that no sandbox can write to
	Copied string   // the file that records what was copied into the workspace
	Tree   string   // a commit or tree, by its object id, where the host has no layers
}
