package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/outpost"
	"github.com/litterbox-sandbox/litterbox/internal/workspace/feed"
)

// listedName is the file with the last listing in a sandbox's state directory. It
// saves bytes and is never needed.
const listedName = "listed"

// listing asks for the files: for the difference from the listing before, where both
// ends have it, and else for all. What comes is checked as if it had come whole. One
// that is cut off is asked for once more: the keeper whose link it took may have ended.
func (f files) listing(ctx context.Context, q outpost.Request) (r io.ReadCloser, err error) {
	err = f.c.awake(ctx, func() (err error) {
		cut := false
		if r, cut, err = f.list(ctx, q); cut && ctx.Err() == nil {
			r, _, err = f.list(ctx, q)
		}
		return err
	})
	return r, err
}

// list returns besides whether the answer had begun and was not whole.
func (f files) list(ctx context.Context, q outpost.Request) (r io.ReadCloser, cut bool, err error) {
	path := filepath.Join(f.dir, listedName)
	before, err := os.ReadFile(path)
	if err != nil || len(before) > feed.MaxKept {
		before = nil
	}
	q.Since, q.Place = outpost.TokenOf(before), f.place
	stream, answer, err := f.c.open(ctx, q)
	if err != nil {
		return nil, false, err
	}
	switch answer.Since {
	case "": // an outpost of an earlier version, or a very large listing
		return stream, false, nil
	case outpost.TokenOf(nil):
		before = nil
	case q.Since:
	default:
		return nil, false, errors.Join(driver.Joined(driver.ErrUnreachable, errors.New("the outpost answers with the difference from another listing")), stream.Close())
	}
	stop := context.AfterFunc(ctx, stream.Abort)
	now, err := feed.ReadDifference(stream, before)
	stop()
	if err = errors.Join(err, stream.Close()); err != nil {
		_ = os.Remove(path) // the next one is asked for whole
		return nil, true, err
	}
	_ = outpost.KeepFile(path, now) // without it the next one is asked for whole
	return io.NopCloser(bytes.NewReader(now)), false, nil
}
