package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/redact"
)

// commandLogFile holds the output of the last command that ran in several
// sandboxes, in the directory of each.
const commandLogFile = "exec.log"

// commandLogMost bounds such a log, in bytes.
const commandLogMost = 64 << 20

// CommandLog keeps what a command prints, line by line and without secrets.
type CommandLog struct {
	Path string

	mu      sync.Mutex // two streams write it
	file    io.WriteCloser
	left    int
	err     error
	secrets redact.Secrets
	streams []*lineWriter
}

// NewCommandLog begins the log of a command in a sandbox that List has given: in
// dir under the sandbox's name, or without a dir beside the sandbox's records,
// where it replaces the one before. env are the variables that the command gets
// for itself: their values are not written.
func (e *Engine) NewCommandLog(ctx context.Context, info Info, dir string, env []string) (*CommandLog, error) {
	path := filepath.Join(e.Store.SandboxDir(info.ID), commandLogFile)
	if dir != "" {
		path = filepath.Join(dir, info.Name+".log")
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot write the log of sandbox %q", info.Name)
	}
	request := ExecRequest{Env: env}
	return &CommandLog{Path: path, file: file, left: commandLogMost, secrets: request.secretsOf(ctx, e)}, nil
}

// Stream is a writer for one stream of the command.
func (l *CommandLog) Stream() io.Writer {
	stream := &lineWriter{each: l.line}
	l.streams = append(l.streams, stream)
	return stream
}

func (l *CommandLog) line(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.secrets.Text(string(line))
	switch {
	case l.left < 0 || l.err != nil:
		return
	case len(text) > l.left:
		text = fmt.Sprintf("[the log ends here: it holds %d MiB]\n", commandLogMost>>20)
		l.left = -1
	default:
		l.left -= len(text)
	}
	_, l.err = io.WriteString(l.file, text)
}

// Close writes what is left, once the command has ended.
func (l *CommandLog) Close() error {
	for _, stream := range l.streams {
		stream.flush()
	}
	if err := errors.Join(l.err, l.file.Close()); err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot write %q", l.Path)
	}
	return nil
}

// Unmerged counts the commits of a listed sandbox that HEAD of its repository
// does not reach. Uncommitted changes inside are not counted.
func (e *Engine) Unmerged(ctx context.Context, info Info) (int, error) { return e.unmerged(ctx, info) }
