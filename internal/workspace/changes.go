package workspace

import (
	"io"
	"io/fs"
)

// Changes is what a workspace holds on top of its base (of a copy: everything),
// as directories that are entered by name. They may change while they are read.
// Errors that concern only one path are [Stays]; for a missing path they are
// fs.ErrNotExist. It is used by one goroutine.
type Changes interface {
	// Began returns when the listing began, in ns since 1970 by the clock that
	// files get their times from. A file changed about then or later may change
	// again without a new time.
	Began() int64

	// Top opens the top directory.
	Top() (Dir, error)

	// File opens the regular file at a path of any depth.
	File(path string) (File, error)

	Close() error
}

// Dir is a directory of changes. One that does not exist, or has become
// something else, has no names.
type Dir interface {
	// Names lists the names here, sorted, each once, whiteouts included.
	Names() ([]string, error)

	// Entry returns the entry with a name. The error of one that cannot be
	// looked at, in a directory that can be listed, is [Stays].
	Entry(name string) (Entry, error)

	// Dir opens the directory with a name.
	Dir(name string) (Dir, error)

	// File opens the regular file with a name.
	File(name string) (File, error)

	// Link returns the target of the symbolic link with a name.
	Link(name string) ([]byte, error)

	// Opaque reports whether nothing of the base shows through.
	Opaque() bool

	// Repository reports whether this is the work tree of a git repository of
	// its own, by git's own test (setup.c, is_git_directory).
	Repository() bool

	Close()
}

// Concurrent is implemented by directories of which several goroutines may open
// files at once, also while another one uses the directory and those above it.
type Concurrent interface {
	Dir
	Concurrent()
}

// File is a regular file that is open for reading.
type File interface {
	io.ReadCloser

	// Entry returns the file's entry as it was when opened.
	Entry() Entry

	// Again returns its entry as it is now.
	Again() (Entry, error)

	// Holes returns how many of its bytes no disk holds.
	Holes() (int64, error)
}

// Kind is the kind of file at a path.
type Kind byte

// The kinds. A file of no other kind cannot be stored by git.
const (
	Regular Kind = iota + 1
	Link
	Directory
	Whiteout // hides the base's file
	Special  // a socket, a pipe or a device
)

// Entry describes the file at a path.
type Entry struct {
	Kind       Kind
	Executable bool   // by its owner
	Size       int64  // bytes
	Held       int64  // bytes that the disk holds; no proof of holes on one that compresses
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

// Changing is the error of a file or directory that turns into something else
// under its reader.
var Changing = Stays{Why: "it changes while it is read", Passing: true}

// Nothing is a directory that does not exist.
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
