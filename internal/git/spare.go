package git

import (
	"context"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/caller"
)

// spare is a git fast-import that was started before there was anything to
// import, so that a commit need not wait for the start of a process. It has read
// nothing of the repository yet, and without input it ends without a trace.
type spare struct {
	mu      sync.Mutex
	process *FastImport
	edges   string
	strict  bool
	timer   *time.Timer
}

// spareTime is how long one waits: longer commands are not worth an idle
// process, and a commit after them need not hurry.
const spareTime = 2 * time.Second

// Prefetch begins, in the background, what an Import with the same State and
// Strict needs before it can begin. Called while a command still runs inside,
// it spares the commit the start of git and the reading of its configuration.
func (r *Repository) Prefetch(state string, strict bool) {
	go func() {
		_, _ = r.Settings() // callers that need them get the error, too
	}()
	edges := state + PacksSuffix
	r.spare.mu.Lock() // until it has started: TakeSpare waits
	go func() {
		defer r.spare.mu.Unlock()
		if r.spare.process != nil {
			return
		}
		started, err := r.StartFastImport(r.own(), edges, strict)
		if err != nil {
			return // the Import that follows meets the same error
		}
		r.spare.process, r.spare.edges, r.spare.strict = started, edges, strict
		r.spare.timer = time.AfterFunc(spareTime, r.EndPrefetch)
	}()
}

// EndPrefetch ends what Prefetch began and nothing has used, and waits for its end:
// afterwards nothing of it touches the repository.
func (r *Repository) EndPrefetch() {
	r.spare.mu.Lock()
	unused := r.spare.process
	r.spare.process = nil
	if unused != nil {
		r.spare.timer.Stop()
	}
	r.spare.mu.Unlock()
	if unused != nil {
		unused.release()
	}
}

// own returns a context for work that no request waits for, on behalf of the
// opener of the repository.
func (r *Repository) own() context.Context {
	if r.caller == nil {
		return context.Background()
	}
	return caller.For(context.Background(), *r.caller)
}

// TakeSpare returns the spare process to a caller that needs one like it, or nil.
func (r *Repository) TakeSpare(edges string, strict bool) *FastImport {
	r.spare.mu.Lock()
	defer r.spare.mu.Unlock()
	taken := r.spare.process
	if taken == nil || r.spare.edges != edges || r.spare.strict != strict {
		return nil
	}
	r.spare.timer.Stop()
	r.spare.process = nil
	return taken
}

// release ends a process that was told nothing.
func (f *FastImport) release() {
	_ = f.pipe.Close() // it was never written to
	_ = f.wait(nil)    // the end of its input is the end
}
