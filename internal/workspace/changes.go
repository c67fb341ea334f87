package workspace

import (
	"io"
	"io/fs"
)

// Changes is what a workspace holds beside its base (of a copy: everything), as
// directories that are entered by name. They may change while they are read.
// Errors that concern one path only are [Stays]; where something is missing
// they are fs.ErrNotExist. It is used by one goroutine.
type Changes interface {
	// Began is when the listing began, in ns since 1970 by the clock that files
	// get their times from. What changed about then or later may change again
	// without another time.
	Began() int64

	// Top opens the top directory.
	Top() (Dir, error)

	// File opens the regular file at a path of any depth.
	File(path string) (File, error)

	Close() error
}

// Dir is a directory of what changed. One that is not there, or is something
// else by now, has no names.
type Dir interface {
	// Names lists what stands here, sorted, each once; whiteouts are among them.
	Names() ([]string, error)

	// Entry says what has a name.
	Entry(name string) (Entry, error)

	// Dir opens the directory of a name.
	Dir(name string) (Dir, error)

	// File opens the regular file of a name.
	File(name string) (File, error)

	// Link is what the symbolic link of a name leads to.
	Link(name string) ([]byte, error)

	// Opaque reports whether nothing of the base shows through.
	Opaque() bool

	// Repository reports whether this is the work tree of a git repository of
	// its own, by what git looks for (setup.c, is_git_directory).
	Repository() bool

	Close()
}

// File is a regular file that is open for reading.
type File interface {
	io.ReadCloser

	// Entry is what it was when it was opened.
	Entry() Entry

	// Again is what it is by now.
	Again() (Entry, error)

	// Holes is how many of its bytes no disk holds.
	Holes() (int64, error)
}

// Kind is what stands at a path.
type Kind byte

// The kinds. What is none of the others git cannot hold.
const (
	Regular Kind = iota + 1
	Link
	Directory
	Whiteout // hides what the base has
	Special  // a socket, a pipe or a device
)

// Entry says what stands at a path.
type Entry struct {
	Kind       Kind
	Executable bool   // by its owner
	Size       int64  // bytes
	Held       int64  // bytes that the disk holds; no proof of holes where it compresses
	Mtime      int64  // nanoseconds since 1970
	Ctime      int64  // the same; no program sets it
	Ino        uint64 // tells a file from another with the same name
}

// Stays is content that cannot be committed as it is; the path stays as it
// was last committed.
type Stays struct {
	Why     string
	Passing bool // the next commit may well take it
}

func (e Stays) Error() string { return e.Why }

// Changing is what a file or directory answers that turns into something else
// under its reader.
var Changing = Stays{Why: "it changes while it is read", Passing: true}

// Nothing is a directory that is not there.
type Nothing struct{}

// Names implements Dir.
func (Nothing) Names() ([]string, error) { return nil, nil }

// Entry implements Dir.
func (Nothing) Entry(string) (Entry, error) { return Entry{}, fs.ErrNotExist }

// Dir implements Dir.
func (Nothing) Dir(string) (Dir, error) { return Nothing{}, nil }

// File implements Dir.
func (Nothing) File(string) (File, error) { return nil, Changing }

// Link implements Dir.
func (Nothing) Link(string) ([]byte, error) { return nil, Changing }

// Opaque implements Dir.
func (Nothing) Opaque() bool { return false }

// Repository implements Dir.
func (Nothing) Repository() bool { return false }

// Close implements Dir.
func (Nothing) Close() {}
