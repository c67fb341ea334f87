package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// conduits links a keeper with a guest that gives every announced connection to
// take.
func conduits(t testing.TB, take func(id uint64, c *wire.Conduit)) *wire.Link {
	t.Helper()
	k, err := wire.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	here, there := sockets(t)
	served := make(chan error, 1)
	go func() {
		served <- wire.ServeAll(there, k.GuestPrivate, k.HostPublic, wire.Handlers{
			Stream: func(wire.Stream) {},
			Announced: func(id uint64) (func(*wire.Conduit), error) {
				if id == 0 {
					return nil, errors.New("no longer\x1b there")
				}
				return func(c *wire.Conduit) { take(id, c) }, nil
			},
			Port: func(port uint16) (func(*wire.Conduit), error) {
				if port != 80 {
					return nil, errors.New("nothing listens there")
				}
				return func(c *wire.Conduit) { take(uint64(port), c) }, nil
			},
		})
	}()
	link, err := wire.Connect(context.Background(), here, k.HostPrivate, k.GuestPublic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = link.Close()
		<-served
	})
	return link
}

// sockets is a connected pair of Unix sockets.
func sockets(t testing.TB) (a, b net.Conn) {
	t.Helper()
	listener, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	a, err = net.Dial("unix", listener.Addr().String())
	if err == nil {
		b, err = listener.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func carry(t testing.TB, link *wire.Link, id uint64) *wire.Conduit {
	t.Helper()
	c, err := link.Carry(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// All bytes arrive in order, both ways at once, and each direction has an end
// of its own.
func TestConduit(t *testing.T) {
	link := conduits(t, func(_ uint64, c *wire.Conduit) {
		all, _ := io.ReadAll(c) // the end of one direction
		_, _ = c.Write([]byte("then "))
		_, _ = c.Write(all)
		_ = c.CloseWrite()
	})
	sent := bytes.Repeat([]byte("0123456789"), 300000)
	for _, size := range []int{0, 1, 511, 512, 513, 32 << 10, len(sent)} {
		c := carry(t, link, 1)
		go func() {
			_, _ = c.Write(sent[:size])
			_ = c.CloseWrite()
		}()
		got, err := io.ReadAll(c)
		if want := append([]byte("then "), sent[:size]...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back of %d: %v", len(got), len(want), err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("after the end: %d, %v", n, err)
		}
		_ = c.Close()
		<-c.Gone()
		if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("written after the close: %v", err)
		}
	}
}

// An orderly close delivers the written data, without an end of its own.
func TestConduitCloseDelivers(t *testing.T) {
	link := conduits(t, func(_ uint64, c *wire.Conduit) {
		_, _ = c.Write(bytes.Repeat([]byte("x"), 30000))
	})
	c := carry(t, link, 1)
	<-c.Gone()
	if got, err := io.ReadAll(c); len(got) != 30000 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestConduitReset(t *testing.T) {
	seen := make(chan error, 1)
	link := conduits(t, func(id uint64, c *wire.Conduit) {
		if id == 2 {
			_ = c.Reset()
			return
		}
		_, err := io.ReadAll(c)
		seen <- err
	})
	_ = carry(t, link, 1).Reset()
	if err := <-seen; !errors.Is(err, wire.ErrReset) {
		t.Errorf("the guest saw %v", err)
	}
	c := carry(t, link, 2)
	if _, err := io.ReadAll(c); !errors.Is(err, wire.ErrReset) {
		t.Errorf("the keeper saw %v", err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("a reset conduit takes bytes")
	}
	// The end of the link is a reset of all.
	c = carry(t, link, 3)
	_ = link.Close()
	if _, err := io.ReadAll(c); !errors.Is(err, wire.ErrReset) {
		t.Errorf("at the end of the link: %v", err)
	}
	<-seen
}

func TestConduitDeadlines(t *testing.T) {
	link := conduits(t, func(_ uint64, c *wire.Conduit) {
		<-c.Gone() // reads nothing
	})
	c := carry(t, link, 1)
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	_ = c.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	n, err := io.Copy(c, bytes.NewReader(make([]byte, 4<<20)))
	if !errors.Is(err, os.ErrDeadlineExceeded) || n > 64<<10 {
		t.Errorf("%d bytes went to an end that reads nothing: %v", n, err)
	}
	_ = c.Close()
	if err := c.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a deadline after the close: %v", err)
	}
}

func TestLinkDial(t *testing.T) {
	link := conduits(t, func(_ uint64, c *wire.Conduit) { _, _ = c.Write([]byte("inside")) })
	c, err := link.Dial(80, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); string(got) != "inside" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := link.Dial(81, nil); fault.KindOf(err) != fault.Unavailable || err.Error() != "nothing listens there" {
		t.Errorf("refused: %v", err)
	}
	if _, err := link.Carry(0); fault.KindOf(err) != fault.NotFound || err.Error() != "no longer\ufffd there" {
		t.Errorf("given up: %v", err)
	}
}

func BenchmarkConduit(b *testing.B) {
	link := conduits(b, func(_ uint64, c *wire.Conduit) {
		block := make([]byte, 32<<10)
		for {
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	})
	c := carry(b, link, 1)
	b.SetBytes(1 << 20)
	for b.Loop() {
		for left := int64(1 << 20); left > 0; {
			n, err := c.Pass(io.Discard, left)
			if err != nil {
				b.Fatal(err)
			}
			left -= n
		}
	}
}
