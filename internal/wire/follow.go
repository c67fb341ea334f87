package wire

import (
	"context"
	"io"
)

// The records that an entry of a [Follow] stream carries (PAX, pax(1)).
const (
	// FollowWas is what the workspace is expected to hold at the path: "none",
	// "file " and the SHA-256 of its content, or "link " and its target.
	FollowWas = "LITTERBOX.was"
	// FollowGone marks a path that must go; its entry has no content.
	FollowGone = "LITTERBOX.gone"
)

// FollowNone is the value of [FollowWas] for a path where nothing is expected.
const FollowNone = "none"

// Followed lists what a [Follow] left as it was.
type Followed struct {
	Stayed [][]byte `json:"stayed"` // paths that hold something other than expected
}

// Follow replaces and removes files of the workspace, each in one step and only
// where it still holds what is expected. Paths that must go come first. A path
// that already holds the new content counts as followed, so a Follow may be
// repeated.
func Follow(ctx context.Context, s Stream, r io.Reader) (Followed, error) {
	var done Followed
	err := call(ctx, s, Request{Op: OpFollow}, r, nil, &done)
	return done, err
}
