package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Log is the audit log in a directory of its own. Any number of processes may
// append to it at once.
type Log struct {
	Dir string
	// Strict flushes every entry to the disk before it counts.
	Strict bool
}

const (
	logName  = "log.jsonl"
	headName = "head"
	lockName = "lock"
)

// maxLine bounds an entry in bytes; the arguments are dropped first.
const maxLine = 16 << 10

// tailSize is how much of the end of the log is read to find the last entry: the
// entry, and bytes that a crash may have torn after it.
const tailSize = 4 * maxLine

// Path is the file with the entries.
func (l *Log) Path() string { return filepath.Join(l.Dir, logName) }

// Append writes an entry. It sets number, time and hashes in it. Bytes that a crash
// left torn at the end of the log stay there, and an entry says so.
func (l *Log) Append(ctx context.Context, e *Entry) error {
	if err := l.append(ctx, e); err != nil {
		return fault.Wrap(waited(err), err, "cannot write the audit log %q", l.Path())
	}
	return nil
}

func (l *Log) append(ctx context.Context, e *Entry) (err error) {
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return err
	}
	unlock, err := take(ctx, filepath.Join(l.Dir, lockName))
	if err != nil {
		return err
	}
	defer unlock()
	file, err := os.OpenFile(l.Path(), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, err := lastEntry(file)
	if err != nil {
		return err
	}
	head, err := l.readHead()
	if err != nil {
		return err
	}
	last := end.entry
	var lines []byte
	add := func(e *Entry) error {
		e.V, e.Seq, e.Prev = Version, last.Seq+1, last.Hash
		if e.Time.IsZero() {
			e.Time = time.Now().UTC()
		}
		line, err := e.bounded()
		if err != nil {
			return err
		}
		lines, last = append(lines, line...), *e
		return nil
	}
	if end.open {
		lines = append(lines, '\n')
	}
	if end.torn != nil {
		if err := add(&Entry{Event: EventTorn, Torn: end.torn}); err != nil {
			return err
		}
	}
	if head.Seq > end.entry.Seq {
		// The log was cut. Numbers go on after the lost ones, so that later entries
		// cannot pass for them.
		last.Seq = max(last.Seq, head.Seq)
		if err := add(&Entry{Event: EventGap, Gap: &head}); err != nil {
			return err
		}
	}
	if err := add(e); err != nil {
		return err
	}
	if _, err := file.Write(lines); err != nil {
		return err
	}
	if l.Strict {
		if err := file.Sync(); err != nil {
			return err
		}
	}
	return l.writeHead(Gap{Seq: e.Seq, Hash: e.Hash})
}

// bounded encodes an entry and drops its arguments when it is too long.
func (e *Entry) bounded() ([]byte, error) {
	line, err := e.line()
	if err == nil && len(line) > maxLine {
		e.Arguments = map[string]any{"left_out": fmt.Sprintf("%d bytes", len(line))}
		if len(e.Problem) > maxLine/4 {
			e.Problem = e.Problem[:maxLine/4]
		}
		line, err = e.line()
	}
	return line, err
}

// ending is the end of a log.
type ending struct {
	entry Entry // the last whole one; zero when there is none
	torn  *Torn // the bytes after it
	open  bool  // the last byte does not end a line
}

func lastEntry(file *os.File) (ending, error) {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return ending{}, err
	}
	for size := int64(tailSize); ; size = info.Size() {
		from := max(0, info.Size()-size)
		tail := make([]byte, info.Size()-from)
		if _, err := file.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
			return ending{}, err
		}
		if end, ok := endOf(tail); ok || from == 0 {
			return end, nil
		}
	}
}

// endOf looks for the last whole entry in the end of a log.
func endOf(tail []byte) (end ending, ok bool) {
	end.open = tail[len(tail)-1] != '\n'
	if end.open {
		// A crash may have cut off no more than the end of the line.
		start := bytes.LastIndexByte(tail, '\n') + 1
		if e, ok := parse(tail[start:]); ok && intact(tail[start:], e) {
			end.entry = e
			return end, true
		}
	}
	for stop := len(tail); ; {
		newline := bytes.LastIndexByte(tail[:stop], '\n')
		if newline < 0 {
			end.torn = tornBytes(tail)
			return end, false
		}
		start := bytes.LastIndexByte(tail[:newline], '\n') + 1
		if e, ok := parse(tail[start:newline]); ok {
			end.entry = e
			if rest := tail[newline+1:]; len(rest) > 0 {
				end.torn = tornBytes(rest)
			}
			return end, true
		}
		stop = newline
	}
}

// tornBytes describes the remains of a crash, without the ends of lines around
// them.
func tornBytes(data []byte) *Torn {
	data = bytes.Trim(data, "\n")
	sum := sha256.Sum256(data)
	return &Torn{Bytes: len(data), SHA256: hex.EncodeToString(sum[:])}
}

// readHead gives the zero head where there is none, or none that can be read: a
// crash may have torn it, and the log itself counts.
func (l *Log) readHead() (Gap, error) {
	data, err := os.ReadFile(filepath.Join(l.Dir, headName))
	if errors.Is(err, fs.ErrNotExist) {
		return Gap{}, nil
	}
	if err != nil {
		return Gap{}, err
	}
	var head Gap
	if _, err := fmt.Sscanf(string(data), "%020d %64s\n", &head.Seq, &head.Hash); err != nil || len(head.Hash) != 2*sha256.Size {
		return Gap{}, nil
	}
	return head, nil
}

// writeHead writes one line of a fixed length over the one before. It comes
// after the log, so a head that is ahead of the log means that the log was cut.
func (l *Log) writeHead(head Gap) error {
	file, err := os.OpenFile(filepath.Join(l.Dir, headName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(fmt.Appendf(nil, "%020d %s\n", head.Seq, head.Hash), 0)
	return errors.Join(err, file.Close())
}

// Head is the hash of the last entry; empty when there is none.
func (l *Log) Head() (string, error) {
	file, err := os.Open(l.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read the audit log")
	}
	defer file.Close()
	end, err := lastEntry(file)
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "cannot read the audit log")
	}
	return end.entry.Hash, nil
}
