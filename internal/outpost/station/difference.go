package station

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
)

// listedName is the file with the last listing of a place, beside its record. It may
// be missing, old or damaged: then the next listing is sent whole.
const listedName = "listed"

// difference streams what a listing has that the one before, which the host names,
// has not.
func (s *Station) difference(stream *outpost.Stream, q outpost.Request, w workspace.Workspace) error {
	ctx := context.Background()
	path := filepath.Join(s.dir(q.Place.Sandbox), listedName)
	before, err := os.ReadFile(path)
	if err != nil || outpost.TokenOf(before) != q.Since {
		before = nil
	}
	changes, err := w.Changes(ctx)
	if err != nil {
		return err
	}
	defer changes.Close()
	large := &feed.Kept{Over: func(so []byte) (io.Writer, error) {
		if err := outpost.WriteMessage(stream, outpost.Answer{}); err != nil {
			return nil, err
		}
		_, err := stream.Write(so)
		return stream, err
	}}
	var rules *workspace.Rules
	if q.Rules != nil {
		rules = &workspace.Rules{Fold: q.Rules.Fold, Texts: q.Rules.Texts}
	}
	err = feed.WriteKept(ctx, large, changes, rules, before)
	now, whole := large.Whole()
	switch {
	case err != nil && whole:
		return err
	case err != nil:
		stream.Abort() // an incomplete stream has no end
		return nil
	case !whole:
		return nil
	}
	keepListing(path, now)
	if err := outpost.WriteMessage(stream, outpost.Answer{Since: outpost.TokenOf(before)}); err != nil {
		return err
	}
	if feed.WriteDifference(stream, before, now) != nil {
		stream.Abort()
	}
	return nil
}

// keepListing replaces the last listing. Without it the next one is sent whole.
func keepListing(path string, listing []byte) {
	if outpost.KeepFile(path, listing) != nil {
		_ = os.Remove(path) // an old one only fails to match
	}
}
