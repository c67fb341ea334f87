package keeper

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// A driver without a shared kernel forwards over the wire: bytes, half-closing,
// a refusal, and a guest that does not answer.
func TestForwardOverTheWire(t *testing.T) {
	t.Parallel()
	keys, err := wire.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	guest := func(s wire.Stream) {
		in, out := wire.NewReader(s), wire.NewWriter(s)
		_, payload, err := in.Next()
		var request wire.Request
		if err != nil || json.Unmarshal(payload, &request) != nil {
			return
		}
		switch request.Port {
		case 80:
			if wire.WriteJSON(out, wire.KindResult, wire.Empty{}) != nil {
				return
			}
			data, err := io.ReadAll(s) // until the half-close
			if err == nil {
				_, _ = s.Write(append([]byte("got "), data...))
			}
		case 81:
			_ = wire.Fail(out, fault.New(fault.Unavailable, "nobody there"))
		default:
			_, _ = s.Read(make([]byte, 1)) // never answers
		}
	}
	go func() {
		if inside, err := listener.Accept(); err == nil {
			_ = wire.Serve(inside, keys.GuestPrivate, keys.HostPublic, guest)
		}
	}()
	host, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	link, err := wire.Connect(t.Context(), host, keys.HostPrivate, keys.GuestPublic)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	k := &keeper{wire: newTether()}
	k.wire.tie(link)
	d := &dialer{k: k, ctx: t.Context()}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	conn, err := d.overWire(80, ctx.Done())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("this")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != "got this" {
		t.Errorf("%q, %v", answer, err)
	}
	conn.Close()
	if _, err := d.overWire(81, ctx.Done()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("refused: %v", err)
	}
	gone := make(chan struct{})
	close(gone)
	if _, err := d.overWire(82, gone); fault.KindOf(err) != fault.Canceled {
		t.Errorf("given up: %v", err)
	}
}
