package engine

import (
	"context"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/hostile"
)

// Glance is what a look at a sandbox's files saw, without reading any of them.
type Glance struct {
	at   time.Time
	seen hostile.Changes
}

// The pace of [Engine.AwaitChange].
const (
	glancePause = 200 * time.Millisecond
	// glanceQuiet is how long files do not change before they count as written, and
	// glanceBusy how long that is waited for: a log may never be quiet.
	glanceQuiet = 400 * time.Millisecond
	glanceBusy  = 3 * time.Second
	// A far sandbox has no files here to look at. The caller asks for them again,
	// after a second at the earliest and for a tenth of the time at most.
	glanceFar      = time.Second
	glanceFarShare = 10
)

// Glance looks at the files of a sandbox. It is taken before they are read, so that
// what changes meanwhile counts as a change after it.
func (e *Engine) Glance(ctx context.Context, place Place) (Glance, error) {
	p, err := e.find(ctx, place.Dir, place.Name)
	if err != nil {
		return Glance{}, err
	}
	return p.glance(), nil
}

// glance is empty for a far sandbox.
func (p *place) glance() Glance {
	now := Glance{at: time.Now()}
	if !p.far() {
		now.seen = p.files().Look(now.at, func(name string) bool { return name == ".git" })
	}
	return now
}

// AwaitChange returns when files of a sandbox have changed since a glance and are
// quiet again, or when most has passed. It may return needlessly: of a far sandbox
// only a listing tells whether something has changed. The end of ctx is no error.
func (e *Engine) AwaitChange(ctx context.Context, place Place, since Glance, most time.Duration) error {
	p, err := e.find(ctx, place.Dir, place.Name)
	if err != nil {
		return err
	}
	end := time.Now().Add(most)
	if p.far() {
		wait(ctx, min(most, max(glanceFar, time.Since(since.at)*glanceFarShare)))
		return nil
	}
	var changed, quiet time.Time // of the first change that was seen, and of the last
	last := since
	for {
		now := p.glance()
		if !now.seen.Same(last.seen) {
			last, quiet = now, now.at
			if changed.IsZero() {
				changed = now.at
			}
		}
		written := !changed.IsZero() && (time.Since(quiet) >= glanceQuiet || time.Since(changed) >= glanceBusy)
		left := time.Until(end)
		if written || left <= 0 {
			return nil
		}
		if !wait(ctx, min(left, max(glancePause, time.Since(now.at)*checkpointShare))) {
			return nil
		}
	}
}
