package landing

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/git"
)

// Limits on reads to judge a merge. Larger files are judged by name.
const (
	maxLookedAt = 1 << 20  // bytes of one file
	maxLookedIn = 64 << 20 // of all
)

// contents are the objects that a judgement reads.
type contents struct {
	git   func(...string) git.Command
	blobs map[string][]byte
}

func newContents(git func(...string) git.Command) *contents {
	return &contents{git: git, blobs: map[string][]byte{}}
}

func (c *contents) get(oid string) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	content, ok := c.blobs[oid]
	return content, ok
}

// fetch reads objects, except those that are too large. Sizes are asked for
// first, so that nothing large is inflated.
func (c *contents) fetch(ctx context.Context, oids []string) error {
	slices.Sort(oids)
	oids = slices.Compact(oids)
	if len(oids) == 0 {
		return nil
	}
	check := c.git("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	check.Stdin = strings.NewReader(strings.Join(oids, "\n") + "\n")
	out, err := check.Output(ctx)
	if err != nil {
		return fault.Wrap("", err, "cannot look into what the merge brings")
	}
	var want []string
	total := 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != "blob" {
			continue
		}
		if size, err := strconv.Atoi(f[2]); err == nil && size <= maxLookedAt && total+size <= maxLookedIn {
			want = append(want, f[0])
			total += size
		}
	}
	if len(want) == 0 {
		return nil
	}
	batch := c.git("cat-file", "--batch")
	batch.Stdin = strings.NewReader(strings.Join(want, "\n") + "\n")
	if out, err = batch.Output(ctx); err != nil {
		return fault.Wrap("", err, "cannot look into what the merge brings")
	}
	return c.Read(bufio.NewReader(bytes.NewReader(out)))
}

// Read takes the output of cat-file --batch apart.
func (c *contents) Read(r *bufio.Reader) error {
	for {
		header, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) && header == "" {
			return nil
		}
		f := strings.Fields(header)
		if len(f) != 3 {
			return fault.New(fault.Internal, "cannot read what git cat-file printed")
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size < 0 || size > maxLookedAt {
			return fault.New(fault.Internal, "cannot read what git cat-file printed")
		}
		content := make([]byte, size)
		if _, err := io.ReadFull(r, content); err != nil {
			return fault.Wrap(fault.Internal, err, "cannot read what git cat-file printed")
		}
		if _, err := r.Discard(1); err != nil {
			return fault.Wrap(fault.Internal, err, "cannot read what git cat-file printed")
		}
		c.blobs[f[0]] = content
	}
}

// look is a way to look into a file whose name alone says too little.
type look string

// The looks.
const (
	lookPackageJSON look = "package.json"
	lookPyproject   look = "pyproject.toml"
	lookCargo       look = "Cargo.toml"
	lookMakefile    look = "Makefile"
	lookGo          look = "Go source"
	lookPlugins     look = "plugins"
)

// finding is the result of a look; no class means that nothing runs.
type finding struct {
	class  Class
	reason string
}

// look compares the contents of a change. Content that cannot be read or
// understood counts.
func (c *contents) look(rule riskRule, change Change) (finding, bool) {
	whole := finding{rule.class, rule.reason}
	after, ok := c.get(change.NewOid)
	if !ok {
		return whole, true
	}
	var before []byte
	if change.OldMode != 0 && change.OldMode != git.ModeGitlink && change.OldMode != git.ModeLink {
		before, _ = c.get(change.OldOid)
	}
	var found finding
	switch rule.look {
	case lookPackageJSON:
		found = lookAtPackageJSON(before, after, whole)
	case lookPyproject:
		found = lookAtPyproject(before, after, whole)
	case lookCargo:
		found = lookAtCargo(before, after, whole)
	case lookMakefile:
		found = lookAtMakefile(before, after, whole)
	case lookGo:
		found = lookAtGo(before, after, whole)
	case lookPlugins:
		found = lookAtPlugins(before, after, whole)
	default:
		found = whole
	}
	return found, found.class != ""
}
