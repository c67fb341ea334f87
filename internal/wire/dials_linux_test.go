package wire_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// unixPair makes two connected Unix sockets.
func unixPair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		conns[i] = conn.(*net.UnixConn)
		t.Cleanup(func() { conn.Close() })
	}
	return conns[0], conns[1]
}

// echoAt serves an echo and returns its port.
func echoAt(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	return listener
}

func TestDials(t *testing.T) {
	host, inside := unixPair(t)
	dialer, dials := wire.NewDialer(host), wire.NewDials(inside)
	served := make(chan error, 1)
	go func() { served <- dialer.Serve() }()
	listener := echoAt(t)
	go func() {
		for {
			wanted, err := dials.Wanted()
			if err != nil {
				return
			}
			switch wanted.Port {
			case 80:
				conn, err := net.Dial("tcp", listener.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				if err := dials.Pass(wanted.ID, conn.(*net.TCPConn)); err != nil {
					t.Error(err)
				}
				conn.Close()
			case 81:
				if err := dials.Refuse(wanted.ID, "nobody \x1b[2J there"); err != nil {
					t.Error(err)
				}
			} // others never get an answer
		}
	}()
	never := make(chan struct{})
	conn, err := dialer.Dial(80, never)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "ping" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := dialer.Dial(81, never); fault.KindOf(err) != fault.Unavailable || err.Error() != "nobody \ufffd[2J there" {
		t.Errorf("refused: %v", err)
	}
	gone := make(chan struct{})
	close(gone)
	if _, err := dialer.Dial(82, gone); fault.KindOf(err) != fault.Canceled {
		t.Errorf("given up: %v", err)
	}
	// The end of the guest ends every wait.
	waiting := make(chan error, 1)
	go func() {
		_, err := dialer.Dial(83, never)
		waiting <- err
	}()
	inside.Close()
	if err := <-waiting; err == nil {
		t.Error("a connection came out of nowhere")
	}
	<-served
	if _, err := dialer.Dial(80, never); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("after the end: %v", err)
	}
}

// A guest that lies ends the connection, and nothing else.
func TestDialerHostileGuest(t *testing.T) {
	frame := func(kind byte, payload ...byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload))), payload...)
	}
	id := make([]byte, 8)
	pipe := func(t *testing.T) []byte {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return unix.UnixRights(int(r.Fd()))
	}
	for name, send := range map[string]func(*testing.T, *net.UnixConn){
		"a giant":                 func(_ *testing.T, c *net.UnixConn) { _, _ = c.Write([]byte{'c', 0xff, 0xff, 0xff, 0xff}) },
		"an unknown kind":         func(_ *testing.T, c *net.UnixConn) { _, _ = c.Write(frame('z', id...)) },
		"too short":               func(_ *testing.T, c *net.UnixConn) { _, _ = c.Write(frame('c', 1, 2)) },
		"without its descriptor":  func(_ *testing.T, c *net.UnixConn) { _, _ = c.Write(frame('c', id...)) },
		"a pipe for a connection": func(t *testing.T, c *net.UnixConn) { _, _, _ = c.WriteMsgUnix(frame('c', id...), pipe(t), nil) },
		"itself for a connection": func(t *testing.T, c *net.UnixConn) {
			a, _ := unixPair(t)
			f, _ := a.File()
			_, _, _ = c.WriteMsgUnix(frame('c', id...), unix.UnixRights(int(f.Fd())), nil)
			f.Close()
		},
		"half a frame, then an end": func(_ *testing.T, c *net.UnixConn) { _, _ = c.Write(frame('f', id...)[:7]); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			host, inside := unixPair(t)
			dialer := wire.NewDialer(host)
			send(t, inside)
			if err := dialer.Serve(); err == nil {
				t.Error("it was believed")
			}
		})
	}
}
