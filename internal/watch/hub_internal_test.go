package watch

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/audit"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// yard is a hub over real logs, with keepers that the test speaks for.
type yard struct {
	*Hub
	t *testing.T

	mu    sync.Mutex
	dials int
	at    int64               // of the newest piece
	conns map[string]net.Conn // the keeper's end, by id
}

func newYard(t *testing.T, names ...string) *yard {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{t: t, conns: map[string]net.Conn{}}
	y.Hub = &Hub{Sources: Sources{Store: s, Log: &audit.Log{Dir: filepath.Join(s.Shared(), "audit")}, Dial: y.dial,
		State: func(context.Context, *sandbox.Sandbox) (sandbox.State, *sandbox.Agent) { return sandbox.Stopped, nil }}}
	for _, name := range names {
		record := &sandbox.Sandbox{ID: name + "-id", Name: name, GitDir: "/repo/.git", Repository: "/repo", State: sandbox.Stopped}
		err := os.MkdirAll(s.SandboxDir(record.ID), 0o700)
		if err == nil {
			err = s.Save(record)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return y
}

// dial is a keeper that takes one request and then sends what print is given.
func (y *yard) dial(_ context.Context, record *sandbox.Sandbox) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		_, _, _ = wire.NewReader(server).Next() // the request
		y.mu.Lock()
		defer y.mu.Unlock()
		y.dials++
		y.conns[record.ID] = server
	}()
	return client, nil
}

// now is the present round; nil while there is no watcher.
func (y *yard) now() *round {
	y.Hub.mu.Lock()
	defer y.Hub.mu.Unlock()
	return y.round
}

func (y *yard) print(id, text string) {
	y.t.Helper()
	y.mu.Lock()
	conn := y.conns[id]
	y.at = max(y.at+1, time.Now().UnixNano()) // as keepers do
	at := y.at
	y.mu.Unlock()
	if err := wire.WriteJSON(conn, wire.KindStdout, keeper.Echo{At: at, Cycle: 1, Data: []byte(text)}); err != nil {
		y.t.Error(err)
	}
}

func (y *yard) happen(kind sandbox.EventType, n int) {
	y.t.Helper()
	event := &sandbox.Event{Type: kind, Sandbox: "a", SandboxID: "a-id", Repository: "/repo/.git", Data: map[string]string{"n": strconv.Itoa(n)}}
	if err := y.Store.Emit(y.t.Context(), event); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) ask(n int) {
	y.t.Helper()
	if err := y.Log.Append(y.t.Context(), &audit.Entry{Event: audit.EventCall, Action: "ask" + strconv.Itoa(n), Repository: "/repo", Sandbox: "a"}); err != nil {
		y.t.Fatal(err)
	}
}

// viewer is one watcher.
type viewer struct {
	mu    sync.Mutex
	lines []string
	hold  chan struct{} // each waits until it is closed; nil: it does not
	done  chan error
	stop  context.CancelFunc
}

func (y *yard) watch(request Request, hold chan struct{}) *viewer {
	ctx, stop := context.WithCancel(y.t.Context())
	v := &viewer{hold: hold, done: make(chan error, 1), stop: stop}
	go func() {
		v.done <- y.Watch(ctx, request, func(a Activity) error {
			if v.hold != nil {
				<-v.hold
			}
			v.mu.Lock()
			defer v.mu.Unlock()
			v.lines = append(v.lines, brief(a))
			return nil
		})
	}()
	return v
}

// brief is an activity in a word or two.
func brief(a Activity) string {
	switch a.Kind {
	case Output:
		return "out " + a.Text
	case Lost:
		return fmt.Sprintf("lost %d", a.Lines)
	case Call:
		return a.Action
	}
	return string(a.Event) + " " + a.Data["n"]
}

// end ends the watch and gives what it saw.
func (v *viewer) end(t *testing.T) []string {
	t.Helper()
	v.stop()
	if err := <-v.done; err != nil {
		t.Error(err)
	}
	return v.lines
}

// Any number of watchers in a process read the logs once and hold one stream for
// each sandbox; each sees everything once.
func TestWatchersShareWhatReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, "a", "b")
		var viewers []*viewer
		for range 20 {
			viewers = append(viewers, y.watch(Request{}, nil))
		}
		named := y.watch(Request{Name: "b"}, nil)
		quiet := y.watch(Request{NoOutput: true}, nil)
		synctest.Wait()
		y.mu.Lock()
		dials := y.dials
		y.mu.Unlock()
		first := y.now()
		if dials != 2 {
			t.Errorf("%d streams for two sandboxes", dials)
		}
		y.ask(1)
		time.Sleep(time.Second)
		y.happen(sandbox.EventStopped, 2)
		time.Sleep(time.Second)
		y.print("a-id", "three\n")
		time.Sleep(time.Second)
		want := []string{"ask1", "sandbox.stopped 2", "out three"}
		for _, v := range viewers {
			if diff := cmp.Diff(want, v.end(t)); diff != "" {
				t.Fatal(diff)
			}
		}
		if got := named.end(t); len(got) > 0 {
			t.Errorf("a watcher of b saw %q of a", got)
		}
		if diff := cmp.Diff(want[:2], quiet.end(t)); diff != "" {
			t.Error(diff)
		}
		if y.now() != nil {
			t.Error("something reads although nobody watches")
		}
		again := y.watch(Request{}, nil)
		time.Sleep(time.Second)
		if now := y.now(); now == nil || now == first {
			t.Error("no new round has begun")
		}
		y.happen(sandbox.EventStopped, 4)
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"sandbox.stopped 4"}, again.end(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// A stalled watcher holds no other up. Afterwards it is shown everything in the
// logs, once, and learns how many lines of output it has missed.
func TestSlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, "a")
		hold := make(chan struct{})
		slow, quick := y.watch(Request{}, hold), y.watch(Request{}, nil)
		synctest.Wait()
		y.ask(0)
		time.Sleep(time.Second) // slow holds this one
		const logged = boxLogs + 10
		var events []*sandbox.Event
		for n := range logged {
			events = append(events, &sandbox.Event{Type: sandbox.EventStopped, Sandbox: "a", SandboxID: "a-id", Repository: "/repo/.git",
				Data: map[string]string{"n": strconv.Itoa(n)}})
		}
		if err := y.Store.Emit(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		const printed = 40
		line := strings.Repeat("x", 64<<10)
		for range printed {
			y.print("a-id", line+"\n")
			synctest.Wait()
		}
		time.Sleep(time.Second)
		if got := quick.end(t); len(got) != 1+logged+printed {
			t.Errorf("the quick one saw %d, want %d", len(got), 1+logged+printed)
		}
		close(hold)
		time.Sleep(time.Second)
		y.print("a-id", "last\n")
		time.Sleep(time.Second)
		got := slow.end(t)
		var lost, outputs, stopped int
		for _, one := range got {
			switch kind, rest, _ := strings.Cut(one, " "); kind {
			case "lost":
				n, _ := strconv.Atoi(rest)
				lost += n
			case "out":
				outputs++
			case "sandbox.stopped":
				if rest != strconv.Itoa(stopped) {
					t.Fatalf("event %s at the place of %d", rest, stopped)
				}
				stopped++
			}
		}
		if stopped != logged || lost == 0 || lost+outputs != printed+1 || got[len(got)-1] != "out last" {
			t.Errorf("the slow one saw %d events of %d, %d lines and %d lost of %d, last %q", stopped, logged, outputs, lost, printed+1, got[len(got)-1])
		}
	})
}

// A watcher that joins others sees earlier and later activities, once.
func TestLateWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, "a")
		since := time.Now()
		time.Sleep(time.Second)
		early := y.watch(Request{}, nil)
		synctest.Wait()
		var want []string
		for n := range 30 {
			y.happen(sandbox.EventStopped, n)
			y.ask(n)
			want = append(want, fmt.Sprintf("sandbox.stopped %d", n), fmt.Sprintf("ask%d", n))
		}
		late := y.watch(Request{Since: since, NoOutput: true}, nil) // the hub has not looked at the logs
		synctest.Wait()
		time.Sleep(pollEvery)
		y.happen(sandbox.EventStopped, 30)
		want = append(want, "sandbox.stopped 30")
		time.Sleep(time.Second)
		early.end(t)
		counts := map[string]int{}
		for _, one := range late.end(t) {
			counts[one]++
		}
		for _, one := range want {
			if counts[one] != 1 {
				t.Errorf("%q was seen %d times", one, counts[one])
			}
		}
		if len(counts) != len(want) {
			t.Errorf("%d different activities, want %d", len(counts), len(want))
		}
	})
}

// Followers of events share the same reader, and one that waits misses nothing.
func TestFollowEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, "a")
		y.happen(sandbox.EventStopped, 1)
		const follow = boxLogs + 5
		var got []uint64
		done := make(chan error)
		hold := make(chan struct{})
		go func() {
			done <- y.Events(t.Context(), 0, func(e sandbox.Event) bool {
				if got = append(got, e.Seq); len(got) == 2 {
					<-hold
				}
				return len(got) < follow
			})
		}()
		synctest.Wait()
		y.happen(sandbox.EventStopped, 2)
		time.Sleep(time.Second)
		var events []*sandbox.Event
		for range follow {
			events = append(events, &sandbox.Event{Type: sandbox.EventStopped})
		}
		if err := y.Store.Emit(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		close(hold)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for i, seq := range got {
			if seq != uint64(i+1) {
				t.Fatalf("event %d at the place of %d", seq, i+1)
			}
		}
		if len(got) != follow || y.now() != nil {
			t.Errorf("%d events, want %d; still reading: %t", len(got), follow, y.now() != nil)
		}
	})
}
