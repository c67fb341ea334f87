package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// WatchRequest says what to watch.
type WatchRequest struct {
	Dir      string // with All not set: any directory of the repository
	All      bool   // of all repositories
	Name     string // one sandbox only; it need not exist yet
	Since    time.Time
	NoOutput bool
	NoFollow bool // what there is, with Since, and no more
}

// Watch hands activities to each, by time, until ctx ends, which is no error.
// Without Since it begins with the state of what runs. An error of each ends
// it. Sandboxes that come to be are watched too. To watch starts nothing, keeps
// nothing awake and slows nothing down.
func (e *Engine) Watch(ctx context.Context, request WatchRequest, each func(Activity) error) error {
	w := &watching{e: e, request: request, begun: time.Now(), secrets: callerOf(ctx).Secrets(), calls: map[uint64]audit.Entry{},
		common: map[string]string{}, items: make(chan Activity), outputs: map[string]*watchedOutput{}}
	if !request.Since.IsZero() {
		w.begun = request.Since
	}
	var err error
	if !request.All {
		if w.gitDir, err = gitDirOf(ctx, request.Dir); err != nil {
			return err
		}
	}
	if request.Name != "" {
		if w.name, err = sandbox.Slug(request.Name); err != nil {
			return err
		}
	}
	return w.run(ctx, each)
}

// watching is one watch.
type watching struct {
	e            *Engine
	request      WatchRequest
	gitDir, name string    // what is watched; empty means all
	begun        time.Time // nothing older is shown
	secrets      []string
	items        chan Activity // what is new, from every source

	calls  map[uint64]audit.Entry // that have no result yet
	common map[string]string      // common git directory by working directory

	outputs map[string]*watchedOutput // by id of the sandbox
}

func (w *watching) run(ctx context.Context, each func(Activity) error) error {
	after, err := w.e.Store.LastEvent()
	if err != nil {
		return err
	}
	tail := int64(openCallsTail)
	if !w.request.Since.IsZero() {
		tail = -1
	}
	log, err := w.e.auditLog().Reader(tail)
	if err != nil {
		return err
	}
	defer log.Close()
	past, err := w.past(ctx, log, after)
	if err != nil {
		return err
	}
	for _, one := range past {
		if err := each(one); err != nil {
			return err
		}
	}
	if w.request.NoFollow {
		return nil
	}
	return w.live(ctx, log, after, each)
}

// openCallsTail is how much of the audit log's end is looked at for calls that
// are under way.
const openCallsTail = 4 << 20

// past is what there is already: with Since what has happened, otherwise how
// things stand.
func (w *watching) past(ctx context.Context, log *audit.Reader, last uint64) ([]Activity, error) {
	var past []Activity
	take := func(a Activity) { past = append(past, a) }
	entries, err := log.Next()
	if err != nil {
		return nil, err
	}
	w.entries(entries, func(a Activity) {
		if !w.request.Since.IsZero() && !a.Time.Before(w.begun) {
			take(a)
		}
	})
	if w.request.Since.IsZero() {
		err = w.standing(ctx, take)
	} else {
		err = w.e.Store.Events(0, func(event sandbox.Event) bool {
			if a, ok := w.event(event); ok && !a.Time.Before(w.begun) && event.Seq <= last {
				take(a)
			}
			return true
		})
	}
	if err != nil {
		return nil, err
	}
	if !w.request.NoOutput && !w.request.Since.IsZero() {
		w.remembered(ctx, take)
	}
	byTime(past)
	return past, nil
}

func byTime(list []Activity) {
	slices.SortStableFunc(list, func(a, b Activity) int { return a.Time.Compare(b.Time) })
}

// standing tells what runs, and who holds it.
func (w *watching) standing(ctx context.Context, take func(Activity)) error {
	for _, record := range w.sandboxes() {
		state, _ := w.e.state(ctx, record)
		if state != sandbox.Running && state != sandbox.Paused {
			continue
		}
		a := w.about(ActivityState, w.begun, record.Name, record.ID, record.Repository)
		a.State = state
		if agent := w.e.agentOf(record); agent != nil {
			a.Who = &audit.Who{Via: "mcp", Client: w.clean(agent.Client), Version: w.clean(agent.ClientVersion), Session: agent.Session, PID: agent.Holder.PID}
		}
		take(a)
	}
	return nil
}

// sandboxes are those that are watched. A record that cannot be read is none,
// and a directory that cannot be read now is looked at again in a moment.
func (w *watching) sandboxes() []*sandbox.Sandbox {
	records, _, _ := w.e.Store.Sandboxes()
	return slices.DeleteFunc(records, func(r *sandbox.Sandbox) bool { return !w.wanted(r.GitDir, r.Name) })
}

func (w *watching) wanted(gitDir, name string) bool {
	return (w.gitDir == "" || gitDir == w.gitDir) && (w.name == "" || name == w.name)
}

func (w *watching) about(kind ActivityKind, at time.Time, name, id, repository string) Activity {
	return Activity{Version: ActivityVersion, Time: at, Kind: kind, Repository: repository, Sandbox: name, SandboxID: id}
}

// clean takes secrets out of a text.
func (w *watching) clean(text string) string { return redact.Text(text, w.secrets...) }

// entries turns entries of the audit log into activities. Their arguments were
// redacted when they were written.
func (w *watching) entries(entries []audit.Entry, take func(Activity)) {
	for _, entry := range entries {
		kind := ActivityCall
		switch entry.Event {
		case audit.EventCall:
			w.calls[entry.Seq] = entry
		case audit.EventRead:
			kind = ActivityRead
		case audit.EventResult:
			kind = ActivityResult
			call, known := w.calls[entry.Call]
			delete(w.calls, entry.Call)
			if !known {
				continue // of a call long before
			}
			entry.Who, entry.Repository, entry.Sandbox, entry.SandboxID = call.Who, call.Repository, call.Sandbox, call.SandboxID
			entry.Seq = entry.Call
		default:
			continue
		}
		if !w.wanted(w.commonDir(entry.Repository), entry.Sandbox) {
			continue
		}
		a := w.about(kind, entry.Time, entry.Sandbox, entry.SandboxID, entry.Repository)
		a.Call, a.Action, a.Who, a.Arguments = entry.Seq, entry.Action, entry.Who, entry.Arguments
		a.Outcome, a.Problem, a.ExitCode, a.Commit, a.Duration = entry.Outcome, entry.Problem, entry.ExitCode, entry.Commit, entry.Duration
		take(a)
	}
}

// commonDir is the common git directory of a working directory, which is what
// tells repositories from each other.
func (w *watching) commonDir(top string) string {
	if known, ok := w.common[top]; ok || top == "" {
		return known
	}
	dir := top + "/.git" // where it was, when it is gone
	if location, ok := git.Locate(top); ok {
		dir = location.CommonDir
	}
	w.common[top] = dir
	return dir
}

// event turns an event into an activity, when it is one that the audit log does
// not tell already.
func (w *watching) event(event sandbox.Event) (Activity, bool) {
	if !w.wanted(event.Repository, event.Sandbox) {
		return Activity{}, false
	}
	a := w.about("", event.Time, event.Sandbox, event.SandboxID, strings.TrimSuffix(event.Repository, "/.git"))
	a.Cycle, a.Event = event.Cycle, event.Type
	for key, value := range event.Data {
		if a.Data == nil {
			a.Data = map[string]string{}
		}
		a.Data[key] = w.clean(value)
	}
	switch event.Type {
	case sandbox.EventIteration:
		a.Kind, a.Commit, a.Text = ActivityCommit, a.Data["commit"], a.Data["message"]
	case sandbox.EventPolicy, sandbox.EventRefused:
		a.Kind = ActivityNetwork
	case sandbox.EventLimit, sandbox.EventLimits:
		a.Kind = ActivityLimit
	case sandbox.EventCycleLeasing, sandbox.EventCyclePreparing, sandbox.EventCycleExecuting, sandbox.EventCycleProcessing, sandbox.EventCycleCompleted:
		return Activity{}, false // a call and its result
	default:
		a.Kind = ActivityState
	}
	return a, true
}

// Moments of a live watch.
const (
	watchPoll = 50 * time.Millisecond
	// watchSettle is how long an activity is held back, so that what comes from
	// several sources comes by time.
	watchSettle = 150 * time.Millisecond
	// watchHeld is how many are held back at most.
	watchHeld = 4 << 10
)

// live follows everything and hands it on in order.
func (w *watching) live(ctx context.Context, log *audit.Reader, after uint64, each func(Activity) error) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 2)
	started := make(chan string) // ids of sandboxes that came up
	var sources sync.WaitGroup
	defer sources.Wait()
	defer cancel()
	sources.Go(func() { ended <- w.followLog(ctx, log) })
	sources.Go(func() { ended <- w.followEvents(ctx, after, started) })
	sources.Go(func() { w.followOutput(ctx, started) })

	ticker := time.NewTicker(watchPoll)
	defer ticker.Stop()
	var held []Activity
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case a := <-w.items:
			if held = append(held, a); len(held) < watchHeld {
				continue
			}
		case <-ticker.C:
		}
		byTime(held)
		now, full := time.Now(), len(held) >= watchHeld
		n := 0
		for ; n < len(held) && (settled(now, held[n].Time) || full && len(held)-n > watchHeld/2); n++ {
			if err := each(held[n]); err != nil {
				return err
			}
		}
		held = append(held[:0], held[n:]...)
	}
}

// settled tells whether nothing that is older can come any more. What is later
// than now was told before somebody set the clock back; it would be held for as
// long as it was set back.
func settled(now, at time.Time) bool { return now.Sub(at) > watchSettle || at.After(now) }

func (w *watching) send(ctx context.Context, a Activity) {
	select {
	case w.items <- a:
	case <-ctx.Done():
	}
}

func (w *watching) followLog(ctx context.Context, log *audit.Reader) error {
	ticker := time.NewTicker(watchPoll)
	defer ticker.Stop()
	for {
		entries, err := log.Next()
		if err != nil {
			return err
		}
		w.entries(entries, func(a Activity) { w.send(ctx, a) })
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// comesUp are the events after which a sandbox may have another keeper.
var comesUp = []sandbox.EventType{sandbox.EventCreated, sandbox.EventStarted, sandbox.EventAttached}

func (w *watching) followEvents(ctx context.Context, after uint64, started chan<- string) error {
	return w.e.Store.FollowEvents(ctx, after, func(event sandbox.Event) bool {
		if a, ok := w.event(event); ok {
			w.send(ctx, a)
		}
		if w.wanted(event.Repository, event.Sandbox) && slices.Contains(comesUp, event.Type) {
			select {
			case started <- event.SandboxID:
			case <-ctx.Done():
			}
		}
		return ctx.Err() == nil
	})
}
