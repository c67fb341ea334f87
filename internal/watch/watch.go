// Package watch shows what is done in sandboxes while it is done: calls and their
// results, output of commands, commits, refused destinations, changes of state. A
// [Hub] reads the sources once for all watchers of the process; each watch turns
// its input into activities by itself, because secrets depend on the watcher.
//
// Watching starts nothing, keeps nothing awake and slows nothing down: a slow
// reader misses output, and learns how many lines it missed.
//
// Start reading at [Hub.Watch].
package watch

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/git"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// Request says what to watch.
type Request struct {
	GitDir   string    // common git directory of the repository; empty: of all
	Name     string    // one sandbox only, which need not exist yet; empty: all
	Since    time.Time // begins with the events since; zero: with the present state
	NoOutput bool
	NoFollow bool // what there is, with Since, and no more
	Secrets  redact.Secrets
	Note     func(string) // takes what the user should know; nil drops it
}

// Watch hands activities to each, by time, until ctx ends, which is not an error. An
// error of each ends it. New sandboxes are watched too.
func (h *Hub) Watch(ctx context.Context, request Request, each func(Activity) error) error {
	w := &watching{hub: h, request: request, begun: time.Now(), calls: map[uint64]audit.Entry{},
		common: map[string]string{}, outputs: map[string]*watchedOutput{}}
	tail := int64(openCallsTail)
	if !request.Since.IsZero() {
		w.begun, tail = request.Since, -1
	}
	var output func(*sandbox.Sandbox) bool
	if !request.NoOutput {
		output = func(record *sandbox.Sandbox) bool { return w.wanted(record.GitDir, record.Name) }
	}
	if !request.NoFollow {
		var err error
		if w.box, err = h.open(output); err != nil { // before the past is read: nothing is missed in between
			return err
		}
		defer w.box.close()
	}
	var err error
	if w.log, err = h.Log.Reader(tail); err != nil {
		return err
	}
	defer w.log.Close()
	past, err := w.past(ctx)
	if err != nil {
		return err
	}
	for _, one := range past {
		if err := each(one); err != nil {
			return err
		}
	}
	if request.NoFollow {
		return nil
	}
	return w.live(ctx, each)
}

// watching is one watch.
type watching struct {
	hub     *Hub
	request Request
	begun   time.Time     // nothing older is shown
	box     *box          // new items
	log     *audit.Reader // earlier entries, or those that came while this watcher was behind

	entry, last uint64                    // numbers of the newest entry and event that were read from the logs
	calls       map[uint64]audit.Entry    // that have no result yet
	common      map[string]string         // common git directory by working directory
	outputs     map[string]*watchedOutput // by id of the sandbox
}

// openCallsTail is how much of the audit log's end is searched for calls under
// way.
const openCallsTail = 4 << 20

// past is the beginning of a watch: with Since the events since then, otherwise
// the present state.
func (w *watching) past(ctx context.Context) ([]Activity, error) {
	var past []Activity
	take := func(a Activity) { past = append(past, a) }
	var err error
	if w.last, err = w.hub.Store.LastEvent(); err != nil {
		return nil, err
	}
	entries, err := w.logged()
	if err != nil {
		return nil, err
	}
	w.entries(entries, func(a Activity) {
		if !w.request.Since.IsZero() && !a.Time.Before(w.begun) {
			take(a)
		}
	})
	if w.request.Since.IsZero() {
		w.standing(ctx, take)
	} else {
		err = w.hub.Store.Events(0, func(event sandbox.Event) bool {
			if a, ok := w.event(event); ok && !a.Time.Before(w.begun) && event.Seq <= w.last {
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

// logged reads the audit log by itself.
func (w *watching) logged() ([]audit.Entry, error) {
	entries, err := w.log.Next()
	if len(entries) > 0 {
		w.entry = entries[len(entries)-1].Seq
	}
	return entries, err
}

func byTime(list []Activity) {
	slices.SortStableFunc(list, func(a, b Activity) int { return a.Time.Compare(b.Time) })
}

// standing lists the running sandboxes, and their holders.
func (w *watching) standing(ctx context.Context, take func(Activity)) {
	for _, record := range w.sandboxes() {
		state, agent := w.hub.State(ctx, record)
		if state != sandbox.Running && state != sandbox.Paused {
			continue
		}
		a := w.about(State, w.begun, record.Name, record.ID, record.Repository)
		a.State = state
		if agent != nil {
			a.Who = &audit.Who{Via: "mcp", Client: w.clean(agent.Client), Version: w.clean(agent.ClientVersion), Session: agent.Session, PID: agent.Holder.PID}
		}
		take(a)
	}
}

// sandboxes are those that are watched. An unreadable record is skipped, and an
// unreadable directory is tried again in a moment.
func (w *watching) sandboxes() []*sandbox.Sandbox {
	records, _, _ := w.hub.Store.Sandboxes()
	return slices.DeleteFunc(records, func(r *sandbox.Sandbox) bool { return !w.wanted(r.GitDir, r.Name) })
}

func (w *watching) wanted(gitDir, name string) bool {
	return (w.request.GitDir == "" || gitDir == w.request.GitDir) && (w.request.Name == "" || name == w.request.Name)
}

func (w *watching) about(kind Kind, at time.Time, name, id, repository string) Activity {
	return Activity{Version: Version, Time: at, Kind: kind, Repository: repository, Sandbox: name, SandboxID: id}
}

// clean removes secrets from a text.
func (w *watching) clean(text string) string { return w.request.Secrets.Text(text) }

// entries turns entries of the audit log into activities. Their arguments were
// redacted when they were written.
func (w *watching) entries(entries []audit.Entry, take func(Activity)) {
	for _, entry := range entries {
		kind := Call
		switch entry.Event {
		case audit.EventCall:
			w.calls[entry.Seq] = entry
		case audit.EventRead:
			kind = Read
		case audit.EventResult:
			kind = Result
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

// commonDir is the common git directory of a working directory, which tells
// repositories apart.
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
		a.Kind, a.Commit, a.Text = Commit, a.Data["commit"], a.Data["message"]
	case sandbox.EventPolicy, sandbox.EventRefused:
		a.Kind = Network
	case sandbox.EventLimit, sandbox.EventLimits:
		a.Kind = Limit
	case sandbox.EventCycleLeasing, sandbox.EventCyclePreparing, sandbox.EventCycleExecuting, sandbox.EventCycleProcessing, sandbox.EventCycleCompleted:
		return Activity{}, false // a call and its result
	default:
		a.Kind = State
	}
	return a, true
}

const (
	// settle is how long an activity is held back, so that items of several
	// sources come in order of time.
	settle = 150 * time.Millisecond
	// heldMost is how many are held back at most.
	heldMost = 4 << 10
)

// live shows the hub's items, in order.
func (w *watching) live(ctx context.Context, each func(Activity) error) error {
	var held []Activity
	take := func(a Activity) { held = append(held, a) }
	if err := w.catchUp(take, false); err != nil {
		return err
	}
	soon := time.NewTimer(settle)
	defer soon.Stop()
	for {
		byTime(held)
		now, full := time.Now(), len(held) >= heldMost
		n := 0
		for ; n < len(held) && (settled(now, held[n].Time) || full && len(held)-n > heldMost/2); n++ {
			if err := each(held[n]); err != nil {
				return err
			}
		}
		held = append(held[:0], held[n:]...)
		if len(held) > 0 {
			soon.Reset(settle + time.Millisecond - time.Since(held[0].Time))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-soon.C:
			continue
		case <-w.box.wake:
		}
		if err := w.news(w.box.take(), take); err != nil {
			return err
		}
	}
}

// settled reports whether nothing older can still come. A time later than now
// was recorded before the clock was set back; it would be held for as long as the
// clock was set back.
func settled(now, at time.Time) bool { return now.Sub(at) > settle || at.After(now) }

// news takes the content of the box.
func (w *watching) news(n news, take func(Activity)) error {
	if n.err != nil {
		return n.err
	}
	for _, o := range n.printed {
		w.print(o, take)
	}
	if n.behind {
		return w.catchUp(take, true)
	}
	if len(n.entries) > 0 {
		w.entry = n.entries[len(n.entries)-1].Seq
	}
	w.entries(n.entries, take)
	w.happened(n.events, take)
	return nil
}

func (w *watching) happened(events []sandbox.Event, take func(Activity)) {
	for _, event := range events {
		w.last = max(w.last, event.Seq)
		if a, ok := w.event(event); ok {
			take(a)
		}
	}
}

// catchUp reads the logs up to their ends where this watcher is behind, and has
// the hub read as far: its items are then new, except those with the number of one
// that was just read.
func (w *watching) catchUp(take func(Activity), behind bool) error {
	if behind {
		from := w.entry
		entries, err := w.logged()
		if err != nil {
			return err
		}
		w.entries(slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.Seq <= from }), take)
		var missed []sandbox.Event
		err = w.hub.Store.Events(w.last, func(event sandbox.Event) bool {
			missed = append(missed, event)
			return true
		})
		if err != nil {
			return err
		}
		w.happened(missed, take)
	}
	if err := w.box.round.read(); err != nil {
		return err
	}
	n := w.box.take()
	if n.behind {
		return w.catchUp(take, true)
	}
	n.entries = slices.DeleteFunc(slices.Clone(n.entries), func(e audit.Entry) bool { return e.Seq <= w.entry })
	n.events = slices.DeleteFunc(slices.Clone(n.events), func(e sandbox.Event) bool { return e.Seq <= w.last })
	return w.news(n, take)
}
