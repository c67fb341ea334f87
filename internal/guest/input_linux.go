package guest

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// input carries a client's input to a command that reads it when it likes. At
// most wire.StdinWindow bytes wait here: the client sends no more before it is
// given credit.
type input struct {
	out   *wire.Writer // takes the credit
	stdio *stdio

	mu      sync.Mutex
	change  *sync.Cond
	waiting []byte
	ended   bool // the client has no more
	closed  bool // the command reads no more
}

func newInput(out *wire.Writer, s *stdio) *input {
	in := &input{out: out, stdio: s}
	in.change = sync.NewCond(&in.mu)
	return in
}

// add takes input from the client and returns at once.
func (in *input) add(p []byte) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil
	}
	if len(in.waiting)+len(p) > wire.StdinWindow {
		return fault.New(fault.Invalid, "cannot take more input than was allowed")
	}
	in.waiting = append(in.waiting, p...)
	in.change.Signal()
	return nil
}

func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended = true
	in.change.Signal()
}

// close drops the waiting input and frees a pump that is stuck on a full pipe.
func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed, in.waiting = true, nil
	in.change.Signal()
	in.stdio.input.Close()
}

// pump writes to the command until either side has enough.
func (in *input) pump() {
	const atOnce = 32 << 10
	midLine := false
	for {
		p, more := in.next(atOnce)
		if !more {
			break
		}
		if _, err := in.stdio.input.Write(p); err != nil {
			// The command has closed its input. Without credit the client
			// stops sending, as a writer to a full pipe would.
			return
		}
		midLine = p[len(p)-1] != '\n'
		_ = in.out.Frame(wire.KindCredit, binary.BigEndian.AppendUint32(nil, uint32(len(p))))
	}
	if !in.stdio.terminal {
		in.stdio.input.Close()
		return
	}
	_, _ = in.stdio.input.Write(in.stdio.endOfInput(midLine))
}

// next waits for input; more is false when there will be none.
func (in *input) next(atMost int) (p []byte, more bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.waiting) == 0 && !in.ended && !in.closed {
		in.change.Wait()
	}
	if len(in.waiting) == 0 {
		in.waiting = nil
		return nil, false
	}
	n := min(atMost, len(in.waiting))
	p = slices.Clone(in.waiting[:n])
	in.waiting = in.waiting[n:]
	return p, true
}
