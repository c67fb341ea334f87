package cli

import (
	"cmp"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// captureLimit bounds each captured stream in bytes: a command inside can
// write faster than memory lasts.
const captureLimit = 8 << 20

// capture collects a command's output for exec --json.
type capture struct {
	stdout, stderr bounded
}

// bounded keeps the first bytes and swallows the rest.
type bounded struct {
	most int // bytes; 0 is captureLimit

	mu        sync.Mutex
	bytes     []byte
	truncated bool
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keep := min(len(p), cmp.Or(b.most, captureLimit)-len(b.bytes))
	b.bytes = append(b.bytes, p[:keep]...)
	b.truncated = b.truncated || keep < len(p)
	return len(p), nil
}

// execDocument is what exec --json prints. Add fields, never rename them.
type execDocument struct {
	Name       string             `json:"name"`
	ExitCode   int                `json:"exit_code"`
	Signal     string             `json:"signal"` // without SIG; empty when it exited
	TimedOut   bool               `json:"timed_out"`
	Duration   time.Duration      `json:"duration_ns"`
	Stdout     string             `json:"stdout"` // bytes that are not UTF-8 become U+FFFD
	Stderr     string             `json:"stderr"`
	Truncated  bool               `json:"truncated"` // a stream was longer than 8 MiB
	Iteration  *sandbox.Iteration `json:"iteration"` // null with --no-commit
	Background []wire.Process     `json:"background"`
	Notes      []string           `json:"notes"`
	Refused    []refusalDocument  `json:"refused"` // by the network
}

func (c *capture) document(name string, r engine.ExecResult) execDocument {
	return execDocument{
		Name: name, ExitCode: r.Exit.Code, Signal: r.Exit.Signal, TimedOut: r.Exit.TimedOut, Duration: r.Exit.Duration,
		Stdout: string(c.stdout.bytes), Stderr: string(c.stderr.bytes), Truncated: c.stdout.truncated || c.stderr.truncated,
		Iteration: r.Iteration, Background: list(r.Exit.Background), Notes: list(r.Notes), Refused: refusalDocuments(r.Refused),
	}
}
