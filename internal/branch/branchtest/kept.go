package branchtest

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
)

// kept is a source that lists as a machine does: each listing comes as the
// difference from the one before.
type kept struct {
	b *Box
	feed.Source
}

// List implements feed.Source.
func (k *kept) List(ctx context.Context) (io.ReadCloser, error) { return k.list(ctx, nil) }

// ListBut implements feed.Pruner.
func (k *kept) ListBut(ctx context.Context, fold bool, texts [][]byte) (io.ReadCloser, error) {
	return k.list(ctx, &workspace.Rules{Fold: fold, Texts: texts})
}

// ListBelow implements feed.Pruner.
func (k *kept) ListBelow(ctx context.Context, path string) (io.ReadCloser, error) {
	return k.Source.(feed.Pruner).ListBelow(ctx, path)
}

func (k *kept) list(ctx context.Context, rules *workspace.Rules) (io.ReadCloser, error) {
	changes, err := k.b.Workspace().Changes(ctx)
	if err != nil {
		return nil, err
	}
	var now, difference bytes.Buffer
	err = errors.Join(feed.WriteKept(ctx, &now, changes, rules, k.b.listed), changes.Close())
	if err == nil {
		err = feed.WriteDifference(&difference, k.b.listed, now.Bytes())
	}
	if err != nil {
		return nil, err
	}
	if k.b.listed, err = feed.ReadDifference(&difference, k.b.listed); err != nil {
		return nil, err
	}
	if !bytes.Equal(k.b.listed, now.Bytes()) {
		return nil, errors.New("a difference does not make the listing")
	}
	return io.NopCloser(bytes.NewReader(k.b.listed)), nil
}
