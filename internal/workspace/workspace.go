package workspace

import (
	"context"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// ErrUnknown says that the files cannot be asked now. It says nothing about
// what they are: they may hold work that no commit has.
var ErrUnknown = fault.New(fault.Unavailable, "what its files hold is unknown")

// Unknown is ErrUnknown with what stands in the way.
func Unknown(why error) error { return fault.Wrap("", ErrUnknown, "%v", why) }

// Workspace is the files of one sandbox. The sandbox may run, and may be
// hostile: nothing that is read here is to be believed about anything but the
// sandbox's own branch. Every method may be called at any time, several at once,
// and any number of times. Each but Base fails with ErrUnknown where the files
// cannot be asked.
type Workspace interface {
	// Base says what the changes are to be compared with.
	Base() Base

	// Exists reports whether the sandbox has files at all. They may have been
	// removed with only the branch left: then there is nothing to commit.
	Exists(ctx context.Context) (bool, error)

	// Changes opens what differs from the base. The caller closes it.
	Changes(ctx context.Context) (Changes, error)

	// Refs are the branches and the stash of the git inside that the sandbox has
	// written: name to commit. At most MaxRefs, and what cannot be read is left
	// out. It fails with an error that is fs.ErrNotExist where there are no files.
	Refs(ctx context.Context) (map[string]string, error)

	// Touched reports whether something was written at or below one of paths,
	// by a few questions and no walk. It may say so without need.
	Touched(ctx context.Context, paths ...string) (bool, error)

	// Size is what the files take on the disk that holds them. What cannot be
	// read counts nothing.
	Size(ctx context.Context) (Size, error)

	// Home opens a directory below the sandbox's home, for reading. It fails
	// with an error that is fs.ErrNotExist where there is none.
	Home(ctx context.Context, dir string) (*os.Root, error)

	// Where says where the changed files lie, for a human who looks for them.
	Where() string
}

// MaxRefs is how many refs of the git inside are looked at: an agent can make
// any number of them.
const MaxRefs = 200

// Size is what a workspace takes, in bytes.
type Size struct {
	Changes int64 // what it holds beside the base
	Home    int64
}

// Base is what a workspace is compared with: exactly one of its fields is set.
type Base struct {
	Layers []string // directories of this host, topmost first, that no sandbox can write
	Copied string   // the file that remembers what was copied into the workspace
	Tree   string   // a commit or tree, by its object id, where the host has no layers
}
