package watch

import (
	"bytes"
	"context"
	"os"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// A line is searched for secrets up to lineKept and shown up to lineShown: a
// secret that the first cut splits ends after the second.
const (
	lineKept  = 8 << 10
	lineShown = 4 << 10
)

// keyLines bounds how many lines a private key without an end removes.
const keyLines = 100

// watchedOutput is the output of one sandbox's commands as a watcher sees it.
type watchedOutput struct {
	w      *watching
	record *sandbox.Sandbox
	last   int64 // Unix nanoseconds of the newest piece
	lines  map[outputKey]*outputLine
	older  bool // its keeper cannot tell, and the watcher was told
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
	key  int  // lines that a private key may still remove
}

func (w *watching) output(record *sandbox.Sandbox) *watchedOutput {
	o := w.outputs[record.ID]
	if o == nil {
		o = &watchedOutput{w: w, last: w.begun.UnixNano(), lines: map[outputKey]*outputLine{}}
		w.outputs[record.ID] = o
	}
	o.record = record // which may have been renamed
	return o
}

// take turns a keeper's piece into lines.
func (o *watchedOutput) take(piece keeper.Echo, show func(Activity)) {
	o.last = max(o.last, piece.At)
	at := time.Unix(0, piece.At)
	if piece.Lost > 0 {
		clear(o.lines)
		a := o.about(Lost, at)
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
	a := o.about(Output, at)
	a.Cycle, a.Stream, a.Text = key.cycle, "stdout", text
	if key.err {
		a.Stream = "stderr"
	}
	show(a)
}

// cut reports commands whose end was not seen.
func (o *watchedOutput) cut(show func(Activity)) {
	if len(o.lines) > 0 {
		clear(o.lines)
		show(o.about(Lost, time.Now()))
	}
}

func (o *watchedOutput) about(kind Kind, at time.Time) Activity {
	return o.w.about(kind, at, o.record.Name, o.record.ID, o.record.Repository)
}

// rememberedPatience bounds how long keepers may take to send what they remember.
const rememberedPatience = 5 * time.Second

// remembered shows the output since the watch's beginning that keepers remember.
func (w *watching) remembered(ctx context.Context, show func(Activity)) {
	ctx, cancel := context.WithTimeout(ctx, rememberedPatience)
	defer cancel()
	for _, record := range w.sandboxes() {
		o := w.output(record)
		_ = w.hub.echo(ctx, record, o.last, func(piece keeper.Echo) bool { // a keeper that cannot is reported when it is followed
			if !piece.Now {
				o.take(piece, show)
			}
			return !piece.Now
		})
	}
}

// print shows a stream's output.
func (w *watching) print(printed output, show func(Activity)) {
	o := w.output(printed.record)
	switch {
	case printed.problem != nil:
		if !o.older && w.request.Note != nil {
			o.older = true
			w.request.Note("the output of sandbox " + o.record.Name + " is not shown: " + printed.problem.Error())
		}
	case printed.cut:
		o.cut(show)
		if _, err := os.Stat(w.hub.Store.SandboxDir(o.record.ID)); err != nil {
			delete(w.outputs, o.record.ID) // it was deleted
		}
	case printed.piece.At > o.last: // else it was remembered
		o.take(printed.piece, show)
	}
}
