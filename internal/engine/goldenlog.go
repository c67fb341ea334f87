package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// maxBuildLog bounds the file; output beyond that is shown only.
const maxBuildLog = 64 << 20

// maxLogLine is the longest line that is examined as a whole.
const maxLogLine = 64 << 10

// buildLog is the file with a build's output, and its viewer.
type buildLog struct {
	file   *os.File
	show   io.Writer // nil: no viewer
	redact func(string) string
	line   []byte // that is not whole yet
	err    error
}

// title begins a part.
func (l *buildLog) title(name, command string) {
	if command != "" {
		name += ": " + command
	}
	l.note("%s %s\n", time.Now().UTC().Format("15:04:05"), name)
}

func (l *buildLog) note(format string, args ...any) {
	_, _ = fmt.Fprintf(l, format, args...) // the first error is kept
}

func newBuildLog(path string, show io.Writer, secrets redact.Secrets) (*buildLog, error) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot write the log of a build")
	}
	return &buildLog{file: file, show: show, redact: secrets.Text}, nil
}

// Write shows what a command printed and writes whole lines down, without
// secrets. It never fails: a full disk ends no command.
func (l *buildLog) Write(data []byte) (int, error) {
	if l.show != nil {
		if _, err := l.show.Write(data); err != nil {
			l.show = nil // the viewer has gone
		}
	}
	l.line = append(l.line, data...)
	for {
		end := bytes.IndexByte(l.line, '\n')
		if end < 0 && len(l.line) < maxLogLine {
			return len(data), nil
		}
		if end < 0 {
			end = len(l.line) - 1
		}
		l.put(l.line[:end+1])
		l.line = append(l.line[:0], l.line[end+1:]...)
	}
}

func (l *buildLog) put(line []byte) {
	if at, err := l.file.Seek(0, io.SeekCurrent); err != nil || at > maxBuildLog {
		return
	}
	if _, err := l.file.WriteString(l.redact(string(line))); err != nil && l.err == nil {
		l.err = err
	}
}

// end writes down how a build ended.
func (l *buildLog) end(err error) {
	if l.show = nil; err == nil { // the caller tells the viewer
		l.title("done", "")
		return
	}
	l.title("failed", err.Error())
}

// Close writes what is left.
func (l *buildLog) Close() error {
	if len(l.line) > 0 {
		l.put(append(l.line, '\n'))
	}
	if err := errors.Join(l.err, l.file.Close()); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write the log of a build")
	}
	return nil
}
