package feed

import (
	"context"
	"errors"
	"io"

	"github.com/litterbox-sandbox/litterbox/internal/workspace"
)

// From makes a source of a workspace that this process can look at: the
// machine's side, without a transport.
func From(w workspace.Workspace) Source { return from{w} }

type from struct{ w workspace.Workspace }

// piped returns what write writes as a stream.
func piped(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return r
}

func (f from) List(ctx context.Context) (io.ReadCloser, error) {
	changes, err := f.w.Changes(ctx)
	if err != nil {
		return nil, err
	}
	return piped(func(w io.Writer) error { return errors.Join(Write(ctx, w, changes), changes.Close()) }), nil
}

// ListBut implements Pruner.
func (f from) ListBut(ctx context.Context, fold bool, texts [][]byte) (io.ReadCloser, error) {
	changes, err := f.w.Changes(ctx)
	if err != nil {
		return nil, err
	}
	rules := workspace.Rules{Fold: fold, Texts: texts}
	return piped(func(w io.Writer) error { return errors.Join(WriteBut(ctx, w, changes, rules), changes.Close()) }), nil
}

// ListBelow implements Pruner.
func (f from) ListBelow(ctx context.Context, path string) (io.ReadCloser, error) {
	changes, err := f.w.Changes(ctx)
	if err != nil {
		return nil, err
	}
	return piped(func(w io.Writer) error { return errors.Join(WriteBelow(ctx, w, changes, path), changes.Close()) }), nil
}

func (f from) Content(ctx context.Context, path string) (io.ReadCloser, error) {
	changes, err := f.w.Changes(ctx)
	if err != nil {
		return nil, err
	}
	return piped(func(w io.Writer) error {
		file, err := changes.File(path)
		if err != nil {
			return errors.Join(WriteFile(w, nil, err), changes.Close())
		}
		return errors.Join(WriteFile(w, file, nil), file.Close(), changes.Close())
	}), nil
}

func (f from) Refs(ctx context.Context) (map[string]string, error) { return f.w.Refs(ctx) }

func (f from) Size(ctx context.Context) (changes, home int64, err error) {
	size, err := f.w.Size(ctx)
	return size.Changes, size.Home, err
}
