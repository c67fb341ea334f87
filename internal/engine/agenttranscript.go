package engine

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/profile"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// secrets are kept out of every transcript.
func (d *drive) secrets() redact.Secrets { return d.e.Store.Redacts().And(d.hidden...) }

// transcript takes the lines that a client prints.
type transcript struct {
	drive  *drive
	client profile.Profile
	reader profile.Reader

	pieces []profile.Piece // of a text that goes on, whose lines are not written yet
	size   int
}

// longestPieces bounds the lines of a text in pieces that wait for its end.
const longestPieces = 1 << 20

func (t *transcript) line(line []byte) {
	piece, ok := t.client.Piece(line)
	if len(t.pieces) > 0 && !(ok && piece.Follows(t.pieces[0])) || t.size > longestPieces {
		t.flush()
	}
	if ok {
		t.pieces, t.size = append(t.pieces, piece), t.size+len(line)
	} else {
		t.write(t.drive.secrets().Text(string(line)))
	}
	// Read as it came: a secret taken out may take a quote with it.
	for _, event := range t.reader.Read(line) {
		t.drive.record(event)
	}
}

// flush writes the lines of a text that came in pieces. A secret may begin in one
// and end in another: the first piece then has the whole text.
func (t *transcript) flush() {
	if len(t.pieces) == 0 {
		return
	}
	var whole strings.Builder
	for _, piece := range t.pieces {
		whole.WriteString(piece.Text)
	}
	secrets := t.drive.secrets()
	clean := secrets.Text(whole.String())
	changed := clean != whole.String()
	for _, piece := range t.pieces {
		if changed {
			piece.Set(clean)
			clean = ""
		}
		t.write(secrets.Text(piece.Line()))
	}
	t.pieces, t.size = nil, 0
}

func (t *transcript) write(text string) {
	t.drive.mu.Lock()
	defer t.drive.mu.Unlock()
	_, _ = io.WriteString(t.drive.output, text) // the transcript has what counts
}

// runLine is a line of a transcript.
type runLine struct {
	At time.Time `json:"at"`
	profile.Event
}

func (d *drive) record(event RunEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	secrets := d.secrets()
	for _, text := range []*string{&event.Text, &event.About, &event.Path} {
		*text = secrets.Text(*text)
	}
	for _, name := range []*string{&event.Tool, &event.Session, &event.Model, &event.Version} {
		*name = secrets.ByValue(*name)
	}
	d.summary.Add(event)
	if data, err := json.Marshal(runLine{time.Now().UTC(), event}); err == nil {
		_, _ = d.events.Write(append(data, '\n'))
	}
}

// lineWriter hands on whole lines, cut where one is too long.
type lineWriter struct {
	each func([]byte)
	rest []byte
}

// longestLine bounds a line of a client: a tool's result is one line.
const longestLine = 8 << 20

func (w *lineWriter) Write(data []byte) (int, error) {
	n := len(data)
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break
		}
		w.each(append(w.rest, data[:end+1]...))
		w.rest, data = w.rest[:0], data[end+1:]
	}
	if w.rest = append(w.rest, data...); len(w.rest) > longestLine {
		// Between two words, as far as there are any: not within a secret.
		end := 1 + bytes.LastIndexAny(w.rest, " \t,;\"")
		if end < longestLine/2 {
			end = len(w.rest)
		}
		rest := bytes.Clone(w.rest[end:])
		w.rest = w.rest[:end]
		w.flush()
		w.rest = rest
	}
	return n, nil
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.each(append(w.rest, '\n'))
		w.rest = nil
	}
}
