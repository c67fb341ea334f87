package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// The kinds of findings.
const (
	Changed   = "changed"   // a line is not as it was written
	Removed   = "removed"   // entries are missing
	Reordered = "reordered" // an entry is not where it was written
	Truncated = "truncated" // the end is missing
	Foreign   = "foreign"   // a line that is not an entry, and that no crash explains
	TornLine  = "torn"      // a crash tore a line; no damage to the others
)

// Finding is something that verification found.
type Finding struct {
	Line int    `json:"line,omitempty"` // of the log, counted from 1
	Seq  uint64 `json:"seq,omitempty"`
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Harmless findings need no human: a crash left them.
	Harmless bool `json:"harmless"`
}

// Report is the outcome of [Verify].
type Report struct {
	Entries  int       `json:"entries"`
	Head     string    `json:"head"` // hash of the last entry
	Findings []Finding `json:"findings"`
}

// Whole reports whether a crash explains every finding.
func (r *Report) Whole() bool {
	for _, finding := range r.Findings {
		if !finding.Harmless {
			return false
		}
	}
	return true
}

// lines reads the log line by line; a line's end is cut off, and last is true
// for one that has none. A missing log is empty.
func (l *Log) lines() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		file, err := os.Open(l.Path())
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		defer file.Close()
		reader := bufio.NewReaderSize(file, 2*maxLine)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 && !yield(bytes.TrimSuffix(line, []byte{'\n'}), nil) {
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Entries reads the readable entries of the log, oldest first.
func (l *Log) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for line, err := range l.lines() {
			if err != nil {
				yield(Entry{}, fault.Wrap(fault.Unavailable, err, "cannot read the audit log"))
				return
			}
			if e, ok := parse(line); ok && !yield(e, nil) {
				return
			}
		}
	}
}

// Verify reads the whole log and finds changed, removed, reordered and cut-off
// entries. It cannot detect a log that a process with the user's rights rewrote
// from some entry on, head included; for that the engine compares the commits that
// name entries.
func (l *Log) Verify(ctx context.Context) (Report, error) {
	report := Report{Findings: []Finding{}}
	unlock := func() {}
	if _, err := os.Stat(l.Dir); err == nil {
		// No process may append meanwhile, or the head would seem to be ahead.
		release, err := take(ctx, l.Dir+"/"+lockName)
		if err != nil {
			return report, fault.Wrap(waited(err), err, "cannot lock the audit log")
		}
		unlock = release
	}
	defer unlock()
	where, err := l.index()
	if err != nil {
		return report, err
	}
	v := verifier{report: &report, where: where}
	number := 0
	for line, err := range l.lines() {
		if err != nil {
			return report, fault.Wrap(fault.Unavailable, err, "cannot read the audit log")
		}
		number++
		v.line(number, line)
	}
	v.flush(nil)
	head, err := l.readHead()
	if err != nil {
		return report, fault.Wrap(fault.Unavailable, err, "cannot read the head of the audit log")
	}
	v.end(head)
	report.Head = v.last.Hash
	return report, nil
}

// index gives the line of the entry with each hash.
func (l *Log) index() (map[string]int, error) {
	where, number := map[string]int{}, 0
	for line, err := range l.lines() {
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot read the audit log")
		}
		number++
		if e, ok := parse(line); ok {
			where[e.Hash] = number
		}
	}
	return where, nil
}

// verifier walks down the chain.
type verifier struct {
	report *Report
	where  map[string]int
	last   Entry
	begun  bool

	junk     []byte // lines since the last entry that are not entries
	junkLine int
}

func (v *verifier) find(line int, seq uint64, kind, format string, args ...any) {
	v.report.Findings = append(v.report.Findings, Finding{
		Line: line, Seq: seq, Kind: kind, Text: fmt.Sprintf(format, args...), Harmless: kind == TornLine,
	})
}

func (v *verifier) line(number int, line []byte) {
	e, ok := parse(line)
	if !ok {
		if v.junk == nil {
			v.junkLine, v.junk = number, []byte{}
		} else {
			v.junk = append(v.junk, '\n')
		}
		v.junk = append(v.junk, line...)
		return
	}
	v.flush(&e)
	v.report.Entries++
	if !intact(line, e) {
		v.find(number, e.Seq, Changed, "entry %d is not what was written", e.Seq)
	}
	v.link(number, e)
	v.last, v.begun = e, true
}

// flush judges lines that are not entries by the entry that follows: a torn entry
// vouches for exactly those bytes.
func (v *verifier) flush(next *Entry) {
	if v.junk == nil {
		if next != nil && next.Event == EventTorn {
			v.find(0, next.Seq, Removed, "entry %d speaks of %d torn bytes that are not there", next.Seq, tornSize(next))
		}
		return
	}
	found := tornBytes(v.junk)
	line := v.junkLine
	v.junk = nil
	switch {
	case next == nil:
		v.find(line, 0, TornLine, "the log ends with %d bytes that are not an entry: torn by a crash, or cut", found.Bytes)
	case next.Event == EventTorn && next.Torn != nil && *next.Torn == *found:
		v.find(line, next.Seq, TornLine, "%d bytes before entry %d were torn by a crash", found.Bytes, next.Seq)
	default:
		v.find(line, next.Seq, Foreign, "%d bytes before entry %d are not an entry", found.Bytes, next.Seq)
	}
}

func tornSize(e *Entry) int {
	if e.Torn == nil {
		return 0
	}
	return e.Torn.Bytes
}

// link compares an entry with the one before it.
func (v *verifier) link(number int, e Entry) {
	switch {
	case e.Event == EventGap && e.Gap != nil && e.Prev == v.last.Hash:
		v.find(number, e.Seq, Truncated, "entries %d to %d were cut off before entry %d was written", v.last.Seq+1, e.Gap.Seq, e.Seq)
	case e.Prev == v.last.Hash && e.Seq == v.last.Seq+1:
	case e.Prev == v.last.Hash:
		v.find(number, e.Seq, Changed, "entry %d follows entry %d", e.Seq, v.last.Seq)
	case e.Prev == "" && e.Seq == 1:
		v.find(number, e.Seq, Reordered, "a new log begins at line %d", number)
	case v.where[e.Prev] != 0:
		v.find(number, e.Seq, Reordered, "entry %d belongs after line %d", e.Seq, v.where[e.Prev])
	case !v.begun || e.Seq > v.last.Seq+1:
		v.find(number, e.Seq, Removed, "%d entries before entry %d are missing", e.Seq-v.last.Seq-1, e.Seq)
	default:
		v.find(number, e.Seq, Changed, "the entry before entry %d is not the one it was written after", e.Seq)
	}
}

// end compares the last entry with the head. The head is written last, so a
// crash leaves it behind, never ahead.
func (v *verifier) end(head Gap) {
	switch {
	case head.Seq > v.last.Seq:
		v.find(0, head.Seq, Truncated, "the log ends with entry %d, and entry %d had been written", v.last.Seq, head.Seq)
	case head.Seq == v.last.Seq && head.Seq > 0 && head.Hash != v.last.Hash:
		v.find(0, head.Seq, Changed, "the last entry is not the one that was written last")
	case head.Seq == 0 && v.last.Seq > 1:
		v.find(0, 0, Truncated, "the head is missing: entries after entry %d may have been cut off", v.last.Seq)
	}
}
