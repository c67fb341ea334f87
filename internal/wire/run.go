package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// codePipe is the exit code of a command whose output was no longer read: the
// one that a shell reports for SIGPIPE.
const codePipe = 128 + 13

// Streams are a command's standard streams on the client's side. A nil Stdin is
// empty; a nil Stdout or Stderr is discarded. Closed channels are quiet.
type Streams struct {
	// Started, unless nil, is called once, before the command is sent. From then on
	// Signals reach it.
	Started func()

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Resize <-chan Terminal
	// Signals are names without SIG, for the command's process group. After
	// TERM and HUP the guest kills what is left when the grace is over.
	Signals <-chan string
}

// Run runs a command on a fresh stream and returns when it has ended; the
// caller closes the stream afterwards. A failing command is not an error.
//
// A canceled ctx sends TERM to its process group and still waits for the
// result, so that the caller can commit. So does output that is no longer read
// (EPIPE): the group gets PIPE and TERM, the rest is drained, and the exit code
// is 141. (The Go runtime kills a program for an EPIPE on its own descriptors 1
// and 2 unless SIGPIPE is caught.) Any other failure of Stdout or Stderr ends
// the group too and is returned beside the exit.
//
// Stdin never delays the return: a Read that is under way is left behind, and
// the data it returns is lost.
func Run(ctx context.Context, s Stream, command Exec, streams Streams) (Exit, error) {
	if streams.Started != nil {
		streams.Started()
	}
	w := NewWriter(s)
	request := Request{Version: Version, Op: OpExec, Exec: &command}
	if err := WriteJSON(w, KindRequest, request); err != nil {
		return Exit{}, lost(err)
	}
	done := make(chan struct{})
	defer close(done)
	credit := newWindow(StdinWindow)
	defer credit.close()
	go sendInput(w, streams.Stdin, credit)
	go sendControl(ctx, w, streams, done)

	var unwritten error
	pass := func(to io.Writer, p []byte) {
		if to == nil || unwritten != nil {
			return
		}
		if _, unwritten = to.Write(p); unwritten != nil {
			_ = w.Frame(KindSignal, []byte("PIPE"))
			_ = w.Frame(KindSignal, []byte("TERM"))
		}
	}
	r := NewReader(s)
	for {
		kind, payload, err := r.Next()
		if err != nil {
			return Exit{}, lost(err)
		}
		switch kind {
		case KindStdout:
			pass(streams.Stdout, payload)
		case KindStderr:
			pass(streams.Stderr, payload)
		case KindCredit:
			if len(payload) == 4 {
				credit.add(binary.BigEndian.Uint32(payload))
			}
		case KindError:
			return Exit{}, failure(payload)
		case KindResult:
			var exit Exit
			if err := decode(payload, &exit); err != nil {
				return Exit{}, err
			}
			return finish(exit, unwritten)
		}
	}
}

// finish checks what the guest says of the exit and adds what happened here.
func finish(exit Exit, unwritten error) (Exit, error) {
	if exit.Code < 0 || exit.Code > 255 || exit.Duration < 0 || exit.KeptBytes < 0 {
		return Exit{}, fault.New(fault.Unavailable, "cannot use the exit code that the sandbox names: %d", exit.Code)
	}
	exit.Signal = printable(exit.Signal)
	exit.Output = printable(exit.Output)
	exit.Kept = printable(exit.Kept)
	exit.Background = cleanProcesses(exit.Background)
	switch {
	case unwritten == nil:
		return exit, nil
	case errors.Is(unwritten, syscall.EPIPE), errors.Is(unwritten, io.ErrClosedPipe):
		exit.Code, exit.Signal = codePipe, "PIPE"
		return exit, nil
	}
	return exit, fault.Wrap(fault.Unavailable, unwritten, "cannot write the command's output")
}

// sendControl passes signals, sizes and the cancellation on until done.
func sendControl(ctx context.Context, w *Writer, streams Streams, done <-chan struct{}) {
	canceled, signals, sizes := ctx.Done(), streams.Signals, streams.Resize
	for {
		select {
		case <-done:
			return
		case <-canceled:
			canceled = nil
			_ = w.Frame(KindSignal, []byte("TERM"))
		case name, open := <-signals:
			if !open {
				signals = nil
				continue
			}
			_ = w.Frame(KindSignal, []byte(name))
		case size, open := <-sizes:
			if !open {
				sizes = nil
				continue
			}
			_ = WriteJSON(w, KindResize, size)
		}
	}
}

// sendInput copies r to the command as fast as the command reads.
func sendInput(w *Writer, r io.Reader, credit *window) {
	for buf := make([]byte, chunk); r != nil; {
		// Wait before reading: input that is read and not sent is lost to the next
		// reader of the same terminal.
		room := credit.wait()
		if room == 0 {
			return
		}
		n, err := r.Read(buf[:min(room, len(buf))])
		if n > 0 {
			credit.take(n)
			if w.Frame(KindStdin, buf[:n]) != nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	_ = w.Frame(KindStdinEnd, nil)
}

// window counts the bytes of input that may still be sent.
type window struct {
	mu     sync.Mutex
	change *sync.Cond
	free   int
	closed bool
}

func newWindow(size int) *window {
	w := &window{free: size}
	w.change = sync.NewCond(&w.mu)
	return w
}

// wait blocks until there is room and returns how much; 0 means the end.
func (w *window) wait() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.free == 0 && !w.closed {
		w.change.Wait()
	}
	if w.closed {
		return 0
	}
	return w.free
}

func (w *window) take(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free -= n
}

// add never grows the window beyond its size: the guest is not trusted with
// the client's memory, nor with its arithmetic.
func (w *window) add(n uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = min(w.free+int(min(n, StdinWindow)), StdinWindow)
	w.change.Broadcast()
}

func (w *window) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.change.Broadcast()
}
