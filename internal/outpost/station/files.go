package station

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/frozen"
	"github.com/litterbox-sandbox/litterbox/internal/hostile"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/local"
)

// its files, as this machine's disk has them. They are listed as they are, whether
// the place runs or not; the host decides what they mean.
func (s *Station) workspace(p outpost.Place) (workspace.Workspace, error) {
	r, err := s.its(p)
	if err != nil {
		return nil, err
	}
	below, _, err := s.below(p.Sandbox)
	if err != nil {
		return nil, err
	}
	return local.Files{Dir: s.dir(p.Sandbox), Frozen: below.Upper, Copy: r.Whole}, nil
}

// list streams the changes, or the content of one file.
func (s *Station) list(stream *outpost.Stream, q outpost.Request) error {
	w, err := s.workspace(q.Place)
	if err != nil {
		return err
	}
	if q.Op == outpost.OpList {
		s.settle()
		if q.Since != "" {
			return s.difference(stream, q, w)
		}
	}
	changes, err := w.Changes(context.Background())
	if err != nil {
		return err
	}
	defer changes.Close()
	if err := outpost.WriteMessage(stream, outpost.Answer{}); err != nil {
		return err
	}
	ctx := context.Background()
	switch {
	case q.Op == outpost.OpContent:
		err = content(stream, changes, q.Named())
	case q.Op == outpost.OpBelow:
		err = feed.WriteBelow(ctx, stream, changes, q.Named())
	case q.Rules != nil:
		err = feed.WriteBut(ctx, stream, changes, workspace.Rules{Fold: q.Rules.Fold, Texts: q.Rules.Texts})
	default:
		err = feed.Write(ctx, stream, changes)
	}
	if err != nil {
		stream.Abort() // an incomplete stream has no end
	}
	return nil
}

func content(stream *outpost.Stream, changes workspace.Changes, path string) error {
	file, err := changes.File(path)
	if err != nil {
		return feed.WriteFile(stream, nil, err)
	}
	return errors.Join(feed.WriteFile(stream, file, nil), file.Close())
}

func (s *Station) refs(ctx context.Context, p outpost.Place) (outpost.Answer, error) {
	w, err := s.workspace(p)
	if err != nil {
		return outpost.Answer{}, err
	}
	refs, err := w.Refs(ctx)
	return outpost.Answer{Refs: refs}, err
}

func (s *Station) size(ctx context.Context, p outpost.Place) (outpost.Answer, error) {
	w, err := s.workspace(p)
	if err != nil {
		return outpost.Answer{}, err
	}
	size, err := w.Size(ctx)
	seen := hostile.Counted{}
	for _, scratch := range []string{"tmp", "var-tmp"} { // they fill the disk as well
		size.Home += seen.Size(filepath.Join(s.dir(p.Sandbox), scratch))
	}
	_, stack, failed := s.below(p.Sandbox)
	for _, name := range stack { // a snapshot makes no room, and a golden is not the place's
		if layer := filepath.Join(s.frozen(), name); !frozen.IsGolden(layer) {
			size.Changes += seen.Size(layer)
		}
	}
	return outpost.Answer{Changes: size.Changes, Home: size.Home}, errors.Join(err, failed)
}
