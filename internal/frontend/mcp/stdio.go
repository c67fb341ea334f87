package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// maxMessage bounds one message in bytes, over every transport.
const maxMessage = 32 << 20

// maxQueued bounds the calls that wait for their turn in bytes; maxWaiting in
// number.
const maxQueued = 64 << 20

// serveStdio serves one session on standard input and output.
func (s *server) serveStdio(ctx context.Context) error {
	one, err := s.sessions.open(s.Engine)
	if err != nil {
		return err
	}
	made := s.newServer(func(*sdk.CallToolRequest, string, bool) (*session, error) { return one, nil }, false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended, err := made.Connect(ctx, &lines{in: s.Stdin, out: s.Stdout, turn: &one.turn}, nil)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot serve standard input")
	}
	gone := make(chan error, 1)
	go func() { gone <- ended.Wait() }()
	select {
	case <-ctx.Done():
	case <-gone:
		// The client closed its end, or its input cannot be read: the session is
		// over either way, and in order.
	}
	s.sessions.end(one)
	return nil
}

// lines is the stdio transport: one JSON-RPC message a line. Unlike the SDK's it
// survives lines that are not messages, and it hands over one tool call at a time,
// in order of arrival, as an agent means them. Calls that only read pass one that
// waits for a command.
type lines struct {
	in   io.Reader
	out  io.Writer
	turn *turn // of the session; nil where there is none
}

// Connect implements sdk.Transport.
func (l *lines) Connect(context.Context) (sdk.Connection, error) {
	c := &lineConn{out: l.out, incoming: make(chan incoming), free: make(chan struct{}, 1), closed: make(chan struct{}), turn: l.turn,
		owed: make(map[jsonrpc.ID]struct{})}
	if c.turn != nil {
		c.turn.onLend(c.again)
	}
	go c.pump(l.in)
	return c, nil
}

type incoming struct {
	message jsonrpc.Message
	size    int
	err     error
}

// waitingCall is a tool call whose turn has not come.
type waitingCall struct {
	request *jsonrpc.Request
	size    int
}

type lineConn struct {
	incoming  chan incoming
	closed    chan struct{}
	closeOnce sync.Once
	free      chan struct{} // the call under way was answered, or lets readers pass
	turn      *turn

	writing sync.Mutex
	out     io.Writer
	ids     ids

	mu     sync.Mutex
	busy   bool
	under  jsonrpc.ID // the call under way
	queue  []waitingCall
	queued int                     // bytes
	owed   map[jsonrpc.ID]struct{} // requests without an answer that call no tool
}

// SessionID implements sdk.Connection.
func (c *lineConn) SessionID() string { return "" }

// Close implements sdk.Connection.
func (c *lineConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return nil
}

// pump reads lines until the end. It outlives Close when no more input comes: a
// read of standard input cannot be interrupted.
func (c *lineConn) pump(in io.Reader) {
	reader := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(reader)
		line = bytes.TrimSpace(line)
		switch {
		case errors.Is(err, errTooLong):
			c.complain(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message is longer than %d bytes", maxMessage))
			continue
		case err == nil && len(line) == 0:
			continue
		case err == nil && line[0] == '[':
			c.batch(line)
			continue
		case err == nil:
			c.one(line)
			continue
		}
		select {
		case c.incoming <- incoming{err: err}:
		case <-c.closed:
		}
		return
	}
}

// errTooLong is a line that was skipped.
var errTooLong = errors.New("line too long")

// readLine reads a line, or skips one that is too long.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if !tooLong {
			line = append(line, part...)
		}
		if len(line) > maxMessage {
			tooLong, line = true, nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		case tooLong:
			return nil, errTooLong
		}
		return line, nil
	}
}

// batch takes a batch apart (only the revision 2025-03-26 knows them); each
// message of it is answered on a line of its own.
func (c *lineConn) batch(line []byte) {
	var all []json.RawMessage
	if err := json.Unmarshal(line, &all); err != nil {
		c.complain(jsonrpc.CodeParseError, "a line is not JSON")
		return
	}
	if len(all) == 0 || len(all) > maxWaiting {
		c.complain(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a batch of %d messages", len(all)))
		return
	}
	for _, message := range all {
		c.one(message)
	}
}

func (c *lineConn) one(line []byte) {
	if !json.Valid(line) {
		c.complain(jsonrpc.CodeParseError, "a line is not JSON")
		return
	}
	message, err := jsonrpc.DecodeMessage(c.ids.in(line))
	if err != nil {
		c.complain(jsonrpc.CodeInvalidRequest, "a line is not a JSON-RPC message: "+oneLine(err.Error(), 200))
		return
	}
	select {
	case c.incoming <- incoming{message: message, size: len(line)}:
	case <-c.closed:
	}
}

// complain answers input without a usable id.
func (c *lineConn) complain(code int, text string) {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": text}})
	if err == nil {
		_ = c.line(line) // a lost client shows at the next read
	}
}

func (c *lineConn) line(line []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.out.Write(append(line, '\n'))
	return err
}

// Read implements sdk.Connection: the next message, tool calls in turn. After the
// last line it waits until requests that call no tool are answered, because the SDK
// drops pending answers at the end of its input: a script that pipes one request in
// gets its answer. A tool at work is ended instead: the client may be gone.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	var ended error
	for {
		if ended == nil {
			if request := c.next(); request != nil {
				return request, nil
			}
		} else if !c.owes() {
			return nil, ended
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case <-c.free:
			continue
		case in := <-c.incoming:
			if in.err != nil {
				ended = in.err
				continue
			}
			if message := c.admit(in); message != nil {
				return message, nil
			}
		}
	}
}

// next gives the call whose turn it is, if one waits.
func (c *lineConn) next() *jsonrpc.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil
	}
	first := c.queue[0]
	switch {
	case !c.busy:
		c.busy, c.under = true, first.request.ID
	case c.turn == nil || !c.turn.isLent() || !readsOnly(toolOf(first.request)):
		return nil
	}
	c.queue = c.queue[1:]
	c.queued -= first.size
	return first.request
}

// toolOf is the name of the tool that a request calls.
func toolOf(request *jsonrpc.Request) string {
	var params struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(request.Params, &params) // malformed parameters are refused when their turn comes
	return params.Name
}

// owes reports whether a request that calls no tool has no answer yet.
func (c *lineConn) owes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.owed) > 0
}

// again has Read look at the queue once more.
func (c *lineConn) again() {
	select {
	case c.free <- struct{}{}:
	default:
	}
}

// admit passes a message on, or queues a call and returns nil.
func (c *lineConn) admit(in incoming) jsonrpc.Message {
	request, ok := in.message.(*jsonrpc.Request)
	if !ok {
		return in.message
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case request.Method == "notifications/cancelled":
		c.cancelQueued(request)
		return request
	case !request.IsCall():
		return request
	case request.Method != "tools/call":
		c.owed[request.ID] = struct{}{}
		return request
	case len(c.queue) >= maxWaiting || c.queued+in.size > maxQueued:
		go c.refuse(request.ID)
		return nil
	case c.busy || len(c.queue) > 0:
		c.queue = append(c.queue, waitingCall{request, in.size})
		c.queued += in.size
		c.again() // it may be one that passes
		return nil
	}
	c.busy, c.under = true, request.ID
	return request
}

// cancelQueued drops a call that was canceled before its turn, or stops waiting for
// a canceled request; it is not answered, as the protocol requires.
func (c *lineConn) cancelQueued(request *jsonrpc.Request) {
	var params struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(request.Params, &params) != nil {
		return
	}
	id, err := jsonrpc.MakeID(params.RequestID)
	if err != nil {
		return
	}
	delete(c.owed, id)
	for i, waiting := range c.queue {
		if waiting.request.ID == id {
			c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
			c.queued -= waiting.size
			return
		}
	}
}

// refuse answers a call that the queue has no room for.
func (c *lineConn) refuse(id jsonrpc.ID) {
	const overloaded = -32000 // implementation-defined server error
	response := &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{
		Code: overloaded, Message: "too many calls wait for their turn; wait for their answers",
	}}
	if line, err := c.ids.out(response); err == nil {
		_ = c.line(line)
	}
}

// Write implements sdk.Connection.
func (c *lineConn) Write(_ context.Context, message jsonrpc.Message) error {
	line, err := c.ids.out(message)
	if err == nil {
		err = c.line(line)
	}
	if response, ok := message.(*jsonrpc.Response); ok {
		c.mu.Lock()
		if c.busy && response.ID == c.under {
			c.busy = false
		}
		delete(c.owed, response.ID)
		c.again()
		c.mu.Unlock()
	}
	return err
}
