package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/lock"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
)

// The event log is events.jsonl at the root. A full one moves to
// events-<number of the event after its last>.jsonl; the oldest of those go.
const (
	eventsFile = "events.jsonl"
	eventsSize = 8 << 20 // bytes at which a file is full
	eventsKept = 4       // full files
	eventsTail = 2 << 10 // bytes first looked at for the last event
)

// Emit appends events to the log and numbers them. The caller has cut each event to
// what fits a line.
func (s *Store) Emit(ctx context.Context, events ...*sandbox.Event) error {
	path := filepath.Join(s.Root, eventsFile)
	file, err := openEvents(ctx, path)
	if err != nil {
		return err
	}
	defer file.Close() // which gives up the lock
	last, size, torn, err := s.lastEvent(file)
	if err != nil {
		return err
	}
	var lines bytes.Buffer
	if torn {
		lines.WriteByte('\n')
	}
	clean := s.Redacts()
	for _, event := range events {
		last++
		event.Version, event.Seq = sandbox.EventVersion, last
		for key, value := range event.Data {
			if key == "command" {
				event.Data[key] = clean.Text(value)
			} else { // a host may be called like a secret
				event.Data[key] = clean.Tokens(value)
			}
		}
		if event.Time.IsZero() {
			event.Time = time.Now()
		}
		line, err := json.Marshal(event)
		if err != nil {
			return unavailable(err, "encode an event")
		}
		lines.Write(append(seal.Line(line), '\n'))
	}
	if err := s.before(path); err != nil {
		return unavailable(err, "append to the event log")
	}
	if _, err := file.Write(lines.Bytes()); err != nil {
		return unavailable(err, "append to the event log")
	}
	if size+int64(lines.Len()) >= eventsSize {
		return s.rotateEvents(path, last+1)
	}
	return nil
}

// openEvents opens the newest file of the log and takes its lock. A full file that
// moved during the wait is no longer the newest.
func openEvents(ctx context.Context, path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			return nil, unavailable(err, "open the event log")
		}
		if err := lock.File(ctx, file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		ours, err := file.Stat()
		if err != nil {
			return nil, errors.Join(unavailable(err, "read the event log"), file.Close())
		}
		if now, err := os.Stat(path); err == nil && os.SameFile(ours, now) {
			return file, nil
		}
		_ = file.Close() // nothing was written
	}
}

// lastEvent gives the number of the newest event, 0 when there is none, the
// size of the file, and reports whether a crash has torn its last line.
func (s *Store) lastEvent(file *os.File) (seq uint64, size int64, torn bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, 0, false, unavailable(err, "read the event log")
	}
	size = info.Size()
	for tail := int64(eventsTail); size > 0; tail *= 8 {
		data := make([]byte, min(tail, size))
		if _, err := file.ReadAt(data, size-int64(len(data))); err != nil {
			return 0, size, false, unavailable(err, "read the event log")
		}
		torn = data[len(data)-1] != '\n'
		lines := bytes.Split(data, []byte{'\n'})
		for _, line := range slices.Backward(lines) {
			var event struct {
				Seq uint64 `json:"seq"`
			}
			if seal.Decode(line, &event) == nil && event.Seq > 0 {
				return event.Seq, size, torn, nil
			}
		}
		if int64(len(data)) == size {
			break
		}
	}
	full, err := s.fullEvents()
	if err != nil || len(full) == 0 {
		return 0, size, torn, err
	}
	return full[len(full)-1].end - 1, size, torn, nil
}

// fullLog is one full file of the event log.
type fullLog struct {
	path string
	end  uint64 // the first number that is no longer in it
}

// fullEvents lists the full files, oldest first.
func (s *Store) fullEvents() ([]fullLog, error) {
	entries, err := os.ReadDir(s.Root)
	if err != nil {
		return nil, unavailable(err, "list the event log")
	}
	var found []fullLog
	for _, entry := range entries {
		var end uint64
		if n, err := fmt.Sscanf(entry.Name(), "events-%d.jsonl", &end); n == 1 && err == nil && strings.HasSuffix(entry.Name(), ".jsonl") {
			found = append(found, fullLog{filepath.Join(s.Root, entry.Name()), end})
		}
	}
	slices.SortFunc(found, func(a, b fullLog) int { return int(int64(a.end) - int64(b.end)) })
	return found, nil
}

func (s *Store) rotateEvents(path string, end uint64) error {
	if err := os.Rename(path, filepath.Join(s.Root, fmt.Sprintf("events-%020d.jsonl", end))); err != nil {
		return unavailable(err, "begin a new event log")
	}
	full, err := s.fullEvents()
	if err != nil {
		return err
	}
	for len(full) > eventsKept {
		if err := os.Remove(full[0].path); err != nil {
			return unavailable(err, "remove the oldest event log")
		}
		full = full[1:]
	}
	return nil
}

// Events hands the events numbered above after to each, oldest first, until
// each returns false.
func (s *Store) Events(after uint64, each func(sandbox.Event) bool) error {
	r := s.EventReader(after)
	defer r.Close()
	return r.Next(each)
}

// EventReader reads events while they are appended. It is for one goroutine.
type EventReader struct {
	store *Store
	last  uint64
	file  *os.File // the newest; nil: not open
	rest  []byte   // the beginning of a line that is still being written
}

// EventReader begins after the event numbered after.
func (s *Store) EventReader(after uint64) *EventReader { return &EventReader{store: s, last: after} }

// Close ends the reading.
func (r *EventReader) Close() {
	if r.file != nil {
		_ = r.file.Close() // nothing was written
		r.file = nil
	}
}

// Next hands the events appended since the last call to each, until each returns
// false; none is not an error.
func (r *EventReader) Next(each func(sandbox.Event) bool) error {
	_, err := r.read(each)
	return err
}

// read delivers new events. It reports false when each wants no more.
func (r *EventReader) read(each func(sandbox.Event) bool) (bool, error) {
	path := filepath.Join(r.store.Root, eventsFile)
	for range eventsKept + 2 {
		if r.file == nil {
			if more, err := r.readFull(each); err != nil || !more {
				return more, err
			}
			file, err := os.Open(path)
			if errors.Is(err, fs.ErrNotExist) {
				return true, nil
			}
			if err != nil {
				return false, unavailable(err, "open the event log")
			}
			r.file, r.rest = file, nil
		}
		data, err := io.ReadAll(r.file)
		if err != nil {
			return false, unavailable(err, "read the event log")
		}
		data = append(r.rest, data...)
		end := bytes.LastIndexByte(data, '\n') + 1
		r.rest = bytes.Clone(data[end:])
		if !r.deliver(data[:end], each) {
			return false, nil
		}
		ours, err := r.file.Stat()
		if err != nil {
			return false, unavailable(err, "read the event log")
		}
		now, err := os.Stat(path)
		if err == nil && os.SameFile(ours, now) {
			return true, nil
		}
		// It was full and has moved; events written meanwhile are found by number.
		r.Close()
	}
	return true, nil
}

// readFull delivers new events in the full files.
func (r *EventReader) readFull(each func(sandbox.Event) bool) (bool, error) {
	full, err := r.store.fullEvents()
	if err != nil {
		return false, err
	}
	for _, log := range full {
		if log.end <= r.last+1 {
			continue
		}
		data, err := os.ReadFile(log.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the oldest, just removed
		}
		if err != nil {
			return false, unavailable(err, "read the event log")
		}
		if !r.deliver(data, each) {
			return false, nil
		}
	}
	return true, nil
}

func (r *EventReader) deliver(data []byte, each func(sandbox.Event) bool) bool {
	for line := range bytes.Lines(data) {
		var event sandbox.Event
		if seal.Decode(line, &event) != nil || event.Seq <= r.last {
			continue // torn by a crash, or delivered before
		}
		r.last = event.Seq
		if !each(event) {
			return false
		}
	}
	return true
}

// LastEvent is the number of the newest event; 0 when there is none.
func (s *Store) LastEvent() (uint64, error) {
	file, err := os.Open(filepath.Join(s.Root, eventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		full, err := s.fullEvents()
		if err != nil || len(full) == 0 {
			return 0, err
		}
		return full[len(full)-1].end - 1, nil
	}
	if err != nil {
		return 0, unavailable(err, "open the event log")
	}
	defer file.Close()
	last, _, _, err := s.lastEvent(file)
	return last, err
}
