package cli

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// prefixes prints the output of several programs: each line once it is complete,
// with its name in front, without anything that a terminal would obey.
type prefixes struct {
	console *console

	mu      sync.Mutex // one line at a time; guards the rest, and the streams' content
	streams []*prefixed
}

// stream is one stream of a program.
func (p *prefixes) stream(name string, to io.Writer) *prefixed {
	w := &prefixed{all: p, before: "[" + clean(name) + "] ", to: to}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams = append(p.streams, w)
	return w
}

// flush prints the last lines of all streams.
func (p *prefixes) flush() error {
	var problems []error
	for _, w := range p.streams {
		problems = append(problems, w.flush())
	}
	return errors.Join(problems...)
}

type prefixed struct {
	all    *prefixes
	before string
	to     io.Writer
	rest   []byte
}

func (w *prefixed) Write(data []byte) (int, error) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.rest = append(w.rest, data...)
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 && len(w.rest) < lineMost {
			return len(data), nil
		}
		if end < 0 {
			end = lineMost - 1
		}
		if err := w.print(w.rest[:end+1]); err != nil {
			return 0, err
		}
		w.rest = w.rest[end+1:]
	}
}

// flush prints a last line that has no end.
func (w *prefixed) flush() error {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if len(w.rest) == 0 {
		return nil
	}
	err := w.print(w.rest)
	w.rest = nil
	return err
}

// print prints one line; of text that a carriage return has overwritten only the
// end counts, as on a terminal.
func (w *prefixed) print(line []byte) error {
	line = bytes.TrimRight(line, "\r\n")
	if at := bytes.LastIndexByte(line, '\r'); at >= 0 {
		line = line[at+1:]
	}
	w.all.console.progress.clear()
	_, err := w.to.Write([]byte(w.before + clean(string(line)) + "\n"))
	return err
}
