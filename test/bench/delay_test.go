package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// A link passes on everything, in order, with the end of each direction, and no
// answer is there before a round trip is over. Its end ends its connections.
func TestDelay(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
				_, _ = conn.Write([]byte("the end"))
			}()
		}
	}()
	link, err := delay(server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const roundTrip = 20 * time.Millisecond
	link.set(roundTrip)
	dial := func() *net.TCPConn {
		t.Helper()
		conn, err := net.Dial("tcp", link.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn.(*net.TCPConn)
	}
	conn := dial()
	began := time.Now()
	for want := 2 * roundTrip; want <= 3*roundTrip; want += roundTrip { // the first after that of the connection
		if _, err := conn.Write([]byte("word")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < want {
			t.Errorf("an answer was there after %v, want at least %v", took, want)
		}
	}
	sent := make([]byte, 3<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(sent) // never fails
	go func() {
		_, err := conn.Write(sent)
		if err = errors.Join(err, conn.CloseWrite()); err != nil {
			t.Error(err)
		}
	}()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, append(sent, "the end"...)) {
		t.Errorf("%d bytes came back, not as they were sent: %v", len(got), err)
	}
	open := dial()
	if err := link.Close(); err != nil {
		t.Error(err)
	}
	_, _ = io.ReadAll(open) // it returns, with a reset or without
}
