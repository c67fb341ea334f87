package branch

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// Limits bound what one import takes, from the sandbox's files or from the
// agent's own commits. Zero fields mean the defaults.
type Limits struct {
	FileSize int64 // bytes of one file; 4 GiB
	Commit   int64 // bytes of all new files; 8 GiB
	Entries  int   // changed paths; 2,000,000
	Holes    int64 // bytes of all that the sandbox committed that the disk does not hold; 64 MiB
}

func (l Limits) withDefaults() Limits {
	if l.FileSize <= 0 {
		l.FileSize = 4 << 30
	}
	if l.Commit <= 0 {
		l.Commit = 8 << 30
	}
	if l.Entries <= 0 {
		l.Entries = 2_000_000
	}
	if l.Holes <= 0 {
		l.Holes = 64 << 20
	}
	return l
}

const (
	// inMemory is how much of one file is held in memory; larger files are copied
	// to a temporary file first, because a file can grow while it is read.
	inMemory = 64 << 20
	// convertible is the size up to which conversions apply; git's own limit
	// is core.bigFileThreshold, 512 MiB.
	convertible = 512 << 20
)

// sink receives the new blobs.
type sink func(size int64, content io.Reader) error

// base is the content of the layers, or of their substitute.
type base struct {
	layers layer.Beneath
	copied *layer.Listing // the same, where everything was copied; nil elsewhere
}

func openBase(ctx context.Context, r *git.Repository, of workspace.Base) (base, error) {
	layers, err := layer.OpenBase(ctx, r, of)
	copied, _ := layers.(*layer.Listing)
	return base{layers, copied}, err
}

// scan reads what a sandbox changed.
type scan struct {
	base
	workspace workspace.Workspace
	old       *delta
	limits    Limits
	format    string // object format
	spoolDir  string
	emit      sink

	ignore     *ignore.Stack
	excluded   workspace.Rules // the same as text, for the lister
	attributes *attribute.Stack
	settings   attribute.Settings
	convert    bool                       // some conversion may apply everywhere
	forced     map[string]struct{}        // tracked by the agent's own commits
	gitlinks   map[string]layer.File      // recorded by the agent's own commits
	modules    map[string]layer.File      // the commits of the base's submodules
	storedCRLF func(path string) bool     // of the blob committed last
	largeFile  func(content []byte) error // stores the object of an LFS pointer
	blobSize   func(oid string) int64     // of a committed blob, as raw bytes; 0 if unknown
	met        func(path string)          // is told of ignored paths that were written; may be nil

	start     int64 // ns, by the clock of the files' times
	entries   int
	taken     int64    // bytes that were emitted
	below     []string // sorted paths that are tracked beside the layers
	goneBelow []string // sorted paths that were gone
	result    present
}

// present is what a scan found.
type present struct {
	files map[string]layer.File
	gone  map[string]struct{}
	left  Left
	notes layer.Notes
}

// Left are paths that no commit can take as they are: their content may exist
// only in the sandbox.
type Left struct {
	Count int
	First string // one of them
}

// Add counts a path in.
func (l *Left) Add(path string) {
	if l.Count++; l.Count == 1 {
		l.First = path
	}
}

// run walks the sandbox's changes.
func (s *scan) run(ctx context.Context) (*present, error) {
	s.limits = s.limits.withDefaults()
	s.result = present{files: map[string]layer.File{}, gone: map[string]struct{}{}}
	for path := range s.old.files {
		s.below = append(s.below, path)
	}
	for path := range s.forced {
		s.below = append(s.below, path)
	}
	slices.Sort(s.below)
	s.goneBelow = slices.Sorted(maps.Keys(s.old.gone))
	if err := s.walk(ctx); err != nil {
		return nil, fault.Wrap("", err, "cannot read the changes of the sandbox")
	}
	// A commit in a submodule need not touch its files.
	for path, link := range s.modules {
		if _, has := s.result.files[path]; !has && !covered(s.result.gone, path) {
			s.result.files[path] = link
		}
	}
	return &s.result, nil
}

// trackedBelow reports whether something below dir was committed before, not
// counting the layers.
func (s *scan) trackedBelow(dir string) bool {
	at, _ := slices.BinarySearch(s.below, dir+"/")
	return at < len(s.below) && strings.HasPrefix(s.below[at], dir+"/")
}

// meet notes an ignored path.
func (s *scan) meet(path string) {
	if s.met != nil {
		s.met(path)
	}
}

// keep leaves a path as it was last committed.
func (s *scan) keep(path string) {
	if f, ok := s.old.files[path]; ok {
		s.result.files[path] = f
	}
	if _, ok := s.old.gone[path]; ok {
		s.result.gone[path] = struct{}{}
	}
}

// keepBelow leaves a directory and everything in it as it was last committed.
func (s *scan) keepBelow(dir string) {
	s.keep(dir)
	for _, sorted := range [][]string{s.below, s.goneBelow} {
		at, _ := slices.BinarySearch(sorted, dir+"/")
		for ; at < len(sorted) && strings.HasPrefix(sorted[at], dir+"/"); at++ {
			s.keep(sorted[at])
		}
	}
}

// contextReader ends a long read when the caller gives up.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, fault.Wrap(fault.Canceled, err, "cannot go on reading")
	}
	return c.r.Read(p)
}
