package branch

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git/attribute"
	"github.com/litterbox-sandbox/litterbox/internal/git/ignore"
	"github.com/litterbox-sandbox/litterbox/internal/layer"
)

// Source is where a sandbox's files lie, as the driver mounted them.
type Source struct {
	Upper  string   // receives every change; a sandbox may write it while we read
	Frozen []string // what it wrote before, as layers below Upper that nothing changes any more, topmost first
	Layers []string // those of the base, read-only, topmost first; no sandbox can write them
	// Copied is set where Upper holds the whole workspace and there are no
	// layers: the file that remembers what was copied there ([layer.Copy]).
	Copied string
}

// Limits bound what one import takes, from the files of the sandbox or in the
// commits that the agent made itself. Zero fields mean the defaults.
type Limits struct {
	FileSize int64 // bytes of one file; 4 GiB
	Commit   int64 // bytes of all new files; 8 GiB
	Entries  int   // paths in the upper directory; 2,000,000
	Holes    int64 // bytes that the disk does not hold, of all that the sandbox committed; 64 MiB
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
	// inMemory is how much of one file is held in memory; larger ones are
	// copied to a temporary file first, because a file can grow while it is read.
	inMemory = 64 << 20
	// convertible is the size up to which conversions apply; git's own limit
	// is core.bigFileThreshold, 512 MiB.
	convertible = 512 << 20
)

// sink receives the blobs that are new.
type sink func(size int64, content io.Reader) error

// scan reads the upper directory of a sandbox.
type scan struct {
	source   Source
	old      *delta
	limits   Limits
	format   string // object format
	spoolDir string
	emit     sink

	ignore     *ignore.Stack
	attributes *attribute.Stack
	settings   attribute.Settings
	convert    bool                       // some conversion may apply everywhere
	forced     map[string]struct{}        // tracked by the agent's own commits
	gitlinks   map[string]layer.File      // recorded by the agent's own commits
	modules    map[string]layer.File      // where the submodules of the base stand
	storedCRLF func(path string) bool     // of the blob committed last
	largeFile  func(content []byte) error // keeps what an LFS pointer points at
	blobSize   func(oid string) int64     // of a blob that was committed, as raw bytes; 0 when nobody knows

	start     int64 // ns
	entries   int
	taken     int64    // bytes that were emitted
	below     []string // sorted paths that are tracked beside the layers
	goneBelow []string // sorted paths that were gone
	result    present
	copied    *layer.Listing // what was copied to the upper directory; nil above layers
}

// present is what a scan found.
type present struct {
	files map[string]layer.File
	gone  map[string]struct{}
	left  Left
	notes layer.Notes
}

// Left are paths that no commit can take as they are: what they hold may be
// nowhere but in the sandbox.
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

// run walks the upper directory, merged with the frozen ones below it.
func (s *scan) run(ctx context.Context) (*present, error) {
	s.limits = s.limits.withDefaults()
	s.start = time.Now().UnixNano()
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

// trackedBelow tells whether something below dir was committed before,
// the layers left aside.
func (s *scan) trackedBelow(dir string) bool {
	at, _ := slices.BinarySearch(s.below, dir+"/")
	return at < len(s.below) && strings.HasPrefix(s.below[at], dir+"/")
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
