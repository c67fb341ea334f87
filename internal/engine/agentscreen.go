package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/store"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// screen is the terminal of a run: its client writes to it whether or not anyone
// watches. An attached terminal shows the end of what was written and types into
// it. The process that drives the run owns it.
type screen struct {
	listener net.Listener
	log      io.Writer
	size     wire.Terminal

	input  *io.PipeReader
	typed  *io.PipeWriter
	resize chan wire.Terminal

	mu       sync.Mutex
	seen     []byte // the end of what was written
	watching map[*wire.Writer]net.Conn
}

// How much of a screen is kept for later viewers; full-screen programs redraw
// when the size changes, so it need not be everything.
const screenKept = 256 << 10

// screenPatience is how long a viewer may take to read. A lost connection must not
// hold up the client.
const screenPatience = 10 * time.Second

func openScreen(dir string, size wire.Terminal, log io.Writer) (*screen, error) {
	s := &screen{size: size, log: log, resize: make(chan wire.Terminal, 1), watching: map[*wire.Writer]net.Conn{}}
	s.input, s.typed = io.Pipe()
	err := process.ShortPath(dir, func(short string) error {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, store.RunSocket), Net: "unix"})
		if err == nil {
			listener.SetUnlinkOnClose(false) // its short path is gone by then
			s.listener = listener
		}
		return err
	})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "cannot open the terminal of a run")
	}
	go s.accept()
	return s, nil
}

func (s *screen) streams() Streams {
	return Streams{Stdin: s.input, Stdout: s, Terminal: &s.size, Resize: s.resize}
}

// Write shows what the client writes.
func (s *screen) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.log.Write(data) // other parts report a full disk to the human
	if s.seen = append(s.seen, data...); len(s.seen) > 2*screenKept {
		s.seen = append([]byte(nil), s.seen[len(s.seen)-screenKept:]...)
	}
	for writer := range s.watching {
		s.show(writer, data)
	}
	return len(data), nil
}

// show sends to one viewer. The caller holds mu.
func (s *screen) show(writer *wire.Writer, data []byte) {
	conn := s.watching[writer]
	_ = conn.SetWriteDeadline(time.Now().Add(screenPatience))
	for len(data) > 0 {
		n := min(len(data), wire.MaxFrame/4)
		if writer.Frame(wire.KindStdout, data[:n]) != nil {
			delete(s.watching, writer)
			conn.Close()
			return
		}
		data = data[n:]
	}
}

func (s *screen) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of descriptors: some will be freed
			continue
		}
		go s.serve(conn)
	}
}

func (s *screen) serve(conn net.Conn) {
	writer := wire.NewWriter(conn)
	s.mu.Lock()
	s.watching[writer] = conn
	s.show(writer, s.seen[max(0, len(s.seen)-screenKept):])
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watching, writer)
		conn.Close()
	}()
	first := true
	for reader := wire.NewReader(conn); ; {
		kind, payload, err := reader.Next()
		if err != nil {
			return
		}
		switch kind {
		case wire.KindStdin:
			if _, err := s.typed.Write(payload); err != nil {
				return
			}
		case wire.KindResize:
			var size wire.Terminal
			if json.Unmarshal(payload, &size) != nil || size.Rows == 0 || size.Cols == 0 {
				continue
			}
			if first {
				// A size of its own first, so that the client draws everything again.
				first = false
				smaller := size
				smaller.Rows = max(1, size.Rows-1)
				s.resizeTo(smaller)
				time.Sleep(redrawPause)
			}
			s.resizeTo(size)
		}
	}
}

// redrawPause lets a client see both sizes: of two signals at once it would get
// one.
const redrawPause = 60 * time.Millisecond

func (s *screen) resizeTo(size wire.Terminal) {
	select {
	case s.resize <- size:
	case <-time.After(time.Second): // nothing runs that could receive it
	}
}

// close tells the viewers how it ended.
func (s *screen) close(run *sandbox.Run) {
	_ = s.listener.Close()
	_ = s.typed.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for writer, conn := range s.watching {
		_ = conn.SetWriteDeadline(time.Now().Add(screenPatience))
		_ = wire.WriteJSON(writer, wire.KindResult, wire.Empty{})
		conn.Close()
	}
	clear(s.watching)
}

// AttachAgent shows the terminal of a run until the run ends (ended is true),
// ctx does, or input does. It begins with the end of what was written.
func (e *Engine) AttachAgent(ctx context.Context, run Run, streams Streams) (ended bool, err error) {
	conn, err := e.dialScreen(ctx, run)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	writer := wire.NewWriter(conn)
	if streams.Terminal != nil {
		if err := wire.WriteJSON(writer, wire.KindResize, *streams.Terminal); err != nil {
			return false, fault.Wrap(fault.Unavailable, err, "cannot attach to %s", run.Title)
		}
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case size, open := <-streams.Resize:
				if !open {
					return
				}
				_ = wire.WriteJSON(writer, wire.KindResize, size)
			}
		}
	}()
	go func() {
		defer cancel()
		for buffer := make([]byte, 4<<10); streams.Stdin != nil; {
			n, err := streams.Stdin.Read(buffer)
			if n > 0 && writer.Frame(wire.KindStdin, buffer[:n]) != nil || err != nil {
				return
			}
		}
	}()
	for reader := wire.NewReader(conn); ; {
		kind, payload, err := reader.Next()
		switch {
		case ctx.Err() != nil:
			return false, nil
		case err != nil:
			return true, nil // its process has died or is ending
		case kind == wire.KindResult:
			return true, nil
		case kind == wire.KindStdout:
			if _, err := streams.Stdout.Write(payload); err != nil {
				return false, fault.Wrap(fault.Unavailable, err, "cannot show the terminal of %s", run.Title)
			}
		}
	}
}

// dialScreen connects to the terminal of a run that may be just beginning.
func (e *Engine) dialScreen(ctx context.Context, run Run) (net.Conn, error) {
	dir := e.Store.RunDir(run.SandboxID, run.Number)
	for deadline := time.Now().Add(runnerPatience); ; {
		var conn net.Conn
		err := process.ShortPath(dir, func(short string) (err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(short, store.RunSocket))
			return err
		})
		if err == nil {
			return conn, nil
		}
		now, readErr := e.Store.Run(run.SandboxID, run.Number)
		if readErr != nil {
			return nil, readErr
		}
		if now = e.asItStands(now); now.State.Over() {
			return nil, fault.New(fault.Conflict, "%s in sandbox %q has ended: %s", run.Title, run.Sandbox, firstLine(now.Problem, string(now.State))).
				WithHint("litterbox agent logs %s", run.Sandbox)
		}
		if time.Now().After(deadline) || ctx.Err() != nil || errors.Is(err, os.ErrPermission) {
			return nil, fault.Wrap(fault.Unavailable, err, "cannot reach the terminal of %s", run.Title)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
