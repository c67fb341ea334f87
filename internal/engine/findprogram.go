package engine

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// findTime bounds a look for a program inside.
const findTime = 30 * time.Second

// FindProgram reports whether a sandbox has a program, by its name. The question is
// litterbox's own: it makes no cycle, no step and no entry in the audit log, unless
// the sandbox must be started.
func (e *Engine) FindProgram(ctx context.Context, place Place, program string, allowDegraded bool) (bool, error) {
	p, err := e.find(ctx, place.Dir, place.Name)
	if err != nil {
		return false, err
	}
	defer e.tell(p)
	stream, err := e.running(ctx, p, allowDegraded)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	var found bytes.Buffer
	exit, err := wire.Run(ctx, stream, wire.Exec{
		Argv:    [][]byte{[]byte("sh"), []byte("-c"), []byte(`command -v -- "$1"`), []byte("sh"), []byte(program)},
		Timeout: findTime,
	}, wire.Streams{Stdin: strings.NewReader(""), Stdout: &limitedBuffer{&found, 4 << 10}})
	if err != nil {
		return false, fault.Wrap("", err, "cannot look for %q in sandbox %q", program, p.record.Name)
	}
	return exit.Code == 0 && found.Len() > 0, nil
}

// limitedBuffer accepts everything and keeps the first bytes.
type limitedBuffer struct {
	kept *bytes.Buffer
	most int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), max(0, b.most-b.kept.Len()))])
	return len(p), nil
}
