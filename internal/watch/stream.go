package watch

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/keeper"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// stream is the output of one sandbox, for all its watchers.
type stream struct {
	round  *round
	record *sandbox.Sandbox
	last   int64 // Unix nanoseconds of the newest piece; guarded by the hub's mu
	wake   chan struct{}
	stop   context.CancelFunc
}

// follow shows the output until ctx ends or the sandbox is deleted, across its
// stops and starts.
func (s *stream) follow(ctx context.Context) {
	defer s.stop()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	hub := s.round.hub
	for {
		err := hub.echo(ctx, s.record, s.since(), func(piece keeper.Echo) bool {
			if !piece.Now {
				s.show(output{record: s.record, piece: piece})
			}
			return ctx.Err() == nil
		})
		if errors.Is(err, errCut) {
			s.show(output{record: s.record, cut: true})
		} else if err != nil {
			s.show(output{record: s.record, problem: err})
		}
		if _, err := os.Stat(hub.Store.SandboxDir(s.record.ID)); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-ticker.C:
		}
	}
}

func (s *stream) since() int64 {
	s.round.hub.mu.Lock()
	defer s.round.hub.mu.Unlock()
	return s.last
}

// show hands a piece to the watchers of the sandbox, unless another stream has
// taken over.
func (s *stream) show(o output) {
	s.round.hub.mu.Lock()
	defer s.round.hub.mu.Unlock()
	if s.round.streams[s.record.ID] != s {
		return
	}
	s.last = max(s.last, o.piece.At)
	for b := range s.round.boxes {
		if b.output != nil && b.output(s.record) {
			b.print(o)
		}
	}
}

// errCut is the ordinary end of a stream.
var errCut = errors.New("the sandbox stopped")

// echo hands pieces of output that are newer than since, in Unix nanoseconds, to
// take until the keeper or ctx ends, or take wants no more. A sandbox without a
// keeper is not an error; its end is errCut.
func (s *Sources) echo(ctx context.Context, record *sandbox.Sandbox, since int64, take func(keeper.Echo) bool) error {
	conn, err := s.Dial(ctx, record)
	if err != nil {
		return nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	request := wire.Request{Version: wire.Version, Op: keeper.OpEcho, Since: since}
	if wire.WriteJSON(conn, wire.KindRequest, request) != nil {
		return nil
	}
	for frames := wire.NewReader(conn); ; {
		kind, payload, err := frames.Next()
		if err != nil {
			return errCut // the sandbox stopped, or its keeper has died
		}
		var piece keeper.Echo
		switch {
		case kind == wire.KindError:
			return unwatchable(payload)
		case kind != wire.KindStdout || json.Unmarshal(payload, &piece) != nil:
			return nil
		case !take(piece):
			return nil
		}
	}
}

// unwatchable words a keeper's refusal.
func unwatchable(payload []byte) error {
	var failure wire.Failure
	if json.Unmarshal(payload, &failure) == nil && failure.Kind != string(fault.Unsupported) {
		return fault.New(fault.Kind(failure.Kind), "%s", failure.Text)
	}
	return fault.New(fault.Unsupported, "it was started by another version of litterbox; litterbox stop ends that")
}
