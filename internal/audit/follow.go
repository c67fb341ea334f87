package audit

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// Reader reads entries while they are appended. It is for one goroutine.
type Reader struct {
	log    *Log
	file   *os.File
	offset int64
	rest   []byte // the beginning of a line that is still being written
	skip   bool   // up to the next line's end: reading began within a line
}

// Reader begins at most tail bytes before the end of the log, or with a
// negative tail at its beginning.
func (l *Log) Reader(tail int64) (*Reader, error) {
	r := &Reader{log: l}
	size, err := r.open()
	if err == nil && tail >= 0 && size > tail {
		r.offset, r.skip = size-tail-1, true // the byte before may be a line's end
	}
	return r, err
}

// open opens the log when there is one, and gives its size.
func (r *Reader) open() (int64, error) {
	file, err := os.Open(r.log.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, unreadable(err)
	}
	info, err := file.Stat()
	if err != nil {
		return 0, errors.Join(unreadable(err), file.Close())
	}
	r.file = file
	return info.Size(), nil
}

// Next gives the entries appended since the last call; none is not an error. If the log
// was cut or replaced it goes on after the rest of it.
func (r *Reader) Next() ([]Entry, error) {
	if r.file == nil {
		if _, err := r.open(); r.file == nil {
			return nil, err
		}
	}
	info, err := r.file.Stat()
	if err != nil {
		return nil, unreadable(err)
	}
	now, err := os.Stat(r.log.Path())
	if err != nil || !os.SameFile(info, now) || now.Size() < r.offset {
		r.Close()
		size, err := r.open()
		r.offset, r.rest, r.skip = size, nil, false
		return nil, err
	}
	if now.Size() == r.offset {
		return nil, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(r.file, r.offset, now.Size()-r.offset))
	if err != nil {
		return nil, unreadable(err)
	}
	r.offset += int64(len(data))
	if r.skip {
		_, data, r.skip = cutLine(data)
	}
	data = append(r.rest, data...)
	end := bytes.LastIndexByte(data, '\n') + 1
	r.rest = bytes.Clone(data[end:])
	var entries []Entry
	for line := range bytes.Lines(data[:end]) {
		if e, ok := parse(bytes.TrimSuffix(line, []byte{'\n'})); ok {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// cutLine cuts off a line; open reports that it has no end yet.
func cutLine(data []byte) (line, rest []byte, open bool) {
	line, rest, found := bytes.Cut(data, []byte{'\n'})
	return line, rest, !found
}

// Close ends the reading.
func (r *Reader) Close() {
	if r.file != nil {
		_ = r.file.Close() // nothing was written
		r.file = nil
	}
}

func unreadable(err error) error {
	return fault.Wrap(fault.Unavailable, err, "cannot read the audit log")
}
