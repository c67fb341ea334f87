package mcp

import (
	"context"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
)

// Functions that are tested directly.
var (
	Visible   = visible
	Printable = printable
	NextSteps = nextSteps
	Failure   = failure
	Loopback  = loopback
	Share     = share
)

// Listing is a list of tools as it is sent.
func Listing(list *sdk.ListToolsResult) any { return listing{list} }

// Cut writes output in pieces and gives the part that is shown.
func Cut(limit int, pieces ...string) (string, bool) {
	var s stream
	for _, piece := range pieces {
		_, _ = s.Write([]byte(piece)) // never fails
	}
	return s.take().cut(limit)
}

// Server makes an SDK server over an engine, with one session or with sessions
// that calls name.
func Server(e UseCases, handles bool) (made *sdk.Server, end func()) {
	s := &server{Options: Options{Engine: e, Dir: "/project", Stderr: io.Discard, AnswerWithin: DefaultAnswerWithin}}
	s.sessions.init(context.Background())
	if handles {
		return s.newServer(s.byHandle, true), s.sessions.keep(context.Background(), e)
	}
	one, _ := s.sessions.open(e) // of the first session there is always room
	return s.newServer(func(*sdk.CallToolRequest, string, bool) (*session, error) { return one, nil }, false),
		s.sessions.keep(context.Background(), e)
}

// Lines is the stdio transport.
func Lines(in io.Reader, out io.Writer) sdk.Transport { return &lines{in: in, out: out} }

// Turn is the order of a session's calls.
type Turn struct{ turn turn }

// Take waits for a turn.
func (t *Turn) Take(ctx context.Context) (func(), error) { return t.turn.take(ctx, false) }

// TakeToRead waits for a turn of a call that changes nothing.
func (t *Turn) TakeToRead(ctx context.Context) (func(), error) { return t.turn.take(ctx, true) }

// Lend lets readers pass.
func (t *Turn) Lend() func() { return t.turn.lend() }

// Waiting counts the waiting calls.
func (t *Turn) Waiting() int {
	t.turn.mu.Lock()
	defer t.turn.mu.Unlock()
	return len(t.turn.waiting)
}

// MaxWaiting is how many may wait.
const MaxWaiting = maxWaiting

var _ UseCases = (*engine.Engine)(nil)
