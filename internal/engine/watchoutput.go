package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// A line is looked through for secrets as far as lineKept and shown as far as
// lineShown: a secret that the first cut goes through ends behind the second.
const (
	lineKept  = 8 << 10
	lineShown = 4 << 10
)

// keyLines bounds how many lines a private key without an end takes with it.
const keyLines = 100

// watchedOutput is the output of one sandbox's commands as a watcher sees it.
type watchedOutput struct {
	w      *watching
	record *sandbox.Sandbox
	last   int64 // Unix nanoseconds of the newest piece
	wake   chan struct{}
	lines  map[outputKey]*outputLine
	older  bool // its keeper cannot tell, and that was said
}

type outputKey struct {
	cycle int
	err   bool
}

// outputLine is a line that has no end yet.
type outputLine struct {
	text []byte
	skip bool // up to the line's end: its beginning was missed
	cut  bool // it is longer than lineKept
	key  int  // lines that a private key may still take
}

func (w *watching) output(record *sandbox.Sandbox) *watchedOutput {
	o := w.outputs[record.ID]
	if o == nil {
		o = &watchedOutput{w: w, record: record, last: w.begun.UnixNano(), wake: make(chan struct{}, 1), lines: map[outputKey]*outputLine{}}
		w.outputs[record.ID] = o
	}
	return o
}

// take turns a keeper's piece into lines.
func (o *watchedOutput) take(piece keeper.Echo, show func(Activity)) {
	o.last = max(o.last, piece.At)
	at := time.Unix(0, piece.At)
	if piece.Lost > 0 {
		clear(o.lines)
		a := o.about(ActivityLost, at)
		a.Lines = piece.Lost
		show(a)
	}
	if piece.End {
		for _, key := range []outputKey{{piece.Cycle, false}, {piece.Cycle, true}} {
			if line := o.lines[key]; line != nil && len(line.text) > 0 {
				o.show(key, line, at, show)
			}
			delete(o.lines, key)
		}
		return
	}
	key := outputKey{piece.Cycle, piece.Error}
	line := o.lines[key]
	if line == nil {
		line = &outputLine{skip: piece.Mid}
		o.lines[key] = line
	}
	for part := range bytes.Lines(piece.Data) {
		ends := part[len(part)-1] == '\n'
		if !line.skip {
			room := max(0, lineKept-len(line.text))
			text := bytes.TrimSuffix(part, []byte{'\n'})
			line.cut = line.cut || len(text) > room
			line.text = append(line.text, text[:min(room, len(text))]...)
			if ends {
				o.show(key, line, at, show)
			}
		}
		if ends {
			line.text, line.skip, line.cut = line.text[:0], false, false
		}
	}
}

// show hands a line on without its secrets.
func (o *watchedOutput) show(key outputKey, line *outputLine, at time.Time, show func(Activity)) {
	text := strings.TrimSuffix(string(line.text), "\r")
	switch {
	case line.key > 0:
		line.key--
		if strings.Contains(text, "-----END ") {
			line.key = 0
		}
		text = "[redacted]"
	case strings.Contains(text, "PRIVATE KEY-----") && strings.Contains(text, "-----BEGIN ") && !strings.Contains(text, "-----END "):
		line.key = keyLines
		text = o.w.clean(text)
	default:
		text = o.w.clean(text)
	}
	if len(text) > lineShown || line.cut {
		text = strings.ToValidUTF8(text[:min(len(text), lineShown)], "�") + "…"
	}
	a := o.about(ActivityOutput, at)
	a.Cycle, a.Stream, a.Text = key.cycle, "stdout", text
	if key.err {
		a.Stream = "stderr"
	}
	show(a)
}

// cut says that commands were under way whose end was not seen.
func (o *watchedOutput) cut(show func(Activity)) {
	if len(o.lines) > 0 {
		clear(o.lines)
		show(o.about(ActivityLost, time.Now()))
	}
}

func (o *watchedOutput) about(kind ActivityKind, at time.Time) Activity {
	return o.w.about(kind, at, o.record.Name, o.record.ID, o.record.Repository)
}

// errCut is the ordinary end of a stream.
var errCut = errors.New("the sandbox stopped")

// stream hands pieces to take until the keeper or ctx ends, or take wants no
// more. That nobody keeps the sandbox is no error; its end is errCut.
func (o *watchedOutput) stream(ctx context.Context, take func(keeper.Echo) bool) error {
	p := o.w.e.place(o.record, nil, nil)
	stream, err := p.dial(ctx)
	if err != nil {
		return nil
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	request := wire.Request{Version: wire.Version, Op: keeper.OpEcho, Since: o.last}
	if wire.WriteJSON(stream, wire.KindRequest, request) != nil {
		return nil
	}
	for frames := wire.NewReader(stream); ; {
		kind, payload, err := frames.Next()
		if err != nil {
			return errCut // the sandbox stopped, or its keeper has died
		}
		var piece keeper.Echo
		switch {
		case kind == wire.KindError:
			return unwatchable(payload)
		case kind != wire.KindStdout || json.Unmarshal(payload, &piece) != nil:
			return nil
		case !take(piece):
			return nil
		}
	}
}

// unwatchable words a keeper's refusal.
func unwatchable(payload []byte) error {
	var failure wire.Failure
	if json.Unmarshal(payload, &failure) == nil && failure.Kind != string(fault.Unsupported) {
		return fault.New(fault.Kind(failure.Kind), "%s", failure.Text)
	}
	return fault.New(fault.Unsupported, "it was started by another version of litterbox; litterbox stop ends that")
}

// rememberedPatience bounds how long keepers may take to tell what they
// remember.
const rememberedPatience = 5 * time.Second

// remembered shows what keepers remember of the output since the watch's
// beginning.
func (w *watching) remembered(ctx context.Context, show func(Activity)) {
	ctx, cancel := context.WithTimeout(ctx, rememberedPatience)
	defer cancel()
	for _, record := range w.sandboxes() {
		o := w.output(record)
		_ = o.stream(ctx, func(piece keeper.Echo) bool { // a keeper that cannot is told of when it is followed
			if !piece.Now {
				o.take(piece, show)
			}
			return !piece.Now
		})
	}
}

// outputEvery is when a watcher looks again for sandboxes and keepers of which
// no event has told.
const outputEvery = 5 * time.Second

// followOutput follows every sandbox that is watched, also those that come.
func (w *watching) followOutput(ctx context.Context, started <-chan string) {
	var all sync.WaitGroup
	defer all.Wait()
	following := map[string]bool{}
	look := func() {
		if w.request.NoOutput {
			return
		}
		for _, record := range w.sandboxes() {
			if o := w.output(record); !following[record.ID] {
				following[record.ID] = true
				all.Go(func() { o.follow(ctx) })
			}
		}
	}
	ticker := time.NewTicker(outputEvery)
	defer ticker.Stop()
	for look(); ; look() {
		select {
		case <-ctx.Done():
			return
		case id := <-started:
			if o := w.outputs[id]; o != nil {
				select {
				case o.wake <- struct{}{}:
				default: // it looks anyway
				}
			}
		case <-ticker.C:
		}
	}
}

// follow shows the output of one sandbox until ctx ends or it is deleted,
// however often it stops and starts.
func (o *watchedOutput) follow(ctx context.Context) {
	ticker := time.NewTicker(outputEvery)
	defer ticker.Stop()
	for {
		err := o.stream(ctx, func(piece keeper.Echo) bool {
			if !piece.Now {
				o.take(piece, func(a Activity) { o.w.send(ctx, a) })
			}
			return ctx.Err() == nil
		})
		if errors.Is(err, errCut) {
			o.cut(func(a Activity) { o.w.send(ctx, a) })
		} else if err != nil && !o.older && o.w.e.Note != nil {
			o.older = true
			o.w.e.Note("the output of sandbox " + o.record.Name + " is not shown: " + err.Error())
		}
		if _, err := os.Stat(o.w.e.Store.SandboxDir(o.record.ID)); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		case <-ticker.C:
		}
	}
}
