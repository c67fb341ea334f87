package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// A client may send its request before it is welcomed. That of the keeper itself is
// answered without the guest, which takes a round trip to be reached in another machine.

// opening is the first frame of a client, which is its request.
type opening struct {
	reader *wire.Reader
	early  chan first // of a reader that does not wait for the welcome; nil without one
}

type first struct {
	kind    wire.Kind
	payload []byte
	request wire.Request
	err     error
}

// listen begins to read a client's request, where waiting for the guest may take long.
func (k *keeper) listen(conn net.Conn) *opening {
	s := &opening{reader: wire.NewReader(conn)}
	if k.carrier() != nil {
		s.early = make(chan first, 1)
		go func() { s.early <- s.read() }()
	}
	return s
}

func (s *opening) read() (f first) {
	if f.kind, f.payload, f.err = s.reader.Next(); f.err == nil && f.kind != wire.KindRequest {
		f.err = errors.New("it is not a request")
	}
	if f.err == nil {
		f.err = json.Unmarshal(f.payload, &f.request)
	}
	return f
}

// next returns the request, once.
func (s *opening) next() (wire.Kind, []byte, wire.Request, error) {
	var f first
	if s.early != nil {
		f = <-s.early
	} else {
		f = s.read()
	}
	return f.kind, f.payload, f.request, f.err
}

// isOwn reports whether a request is the keeper's to answer.
func isOwn(request wire.Request) bool { return strings.HasPrefix(string(request.Op), "keeper.") }

// reach opens a stream to the guest for a client. It returns none without an error
// when the client has already asked for something of the keeper itself.
func (k *keeper) reach(ctx context.Context, s *opening) (wire.Stream, error) {
	if s.early == nil {
		return k.wire.await(ctx)
	}
	type reached struct {
		stream wire.Stream
		err    error
	}
	guest := make(chan reached, 1)
	go func() {
		stream, err := k.wire.await(ctx)
		guest <- reached{stream, err}
	}()
	select {
	case r := <-guest:
		return r.stream, r.err
	case f := <-s.early:
		s.early <- f
		if f.err != nil || !isOwn(f.request) {
			r := <-guest
			return r.stream, r.err
		}
	}
	go func() {
		if r := <-guest; r.err == nil {
			_ = r.stream.Close() // nothing was asked
		}
	}()
	return nil, nil
}
