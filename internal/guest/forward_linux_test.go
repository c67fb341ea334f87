package guest_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/guest/egress"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// listen starts a server inside that answers with what it got, upper case, once
// the client has finished; family is 4 or 6.
func (b *box) listen(port, family string) {
	b.t.Helper()
	b.sh(`cat >server.py <<'END'
import socket,sys,threading
six = sys.argv[2] == "6"
s = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("::1" if six else "127.0.0.1", int(sys.argv[1]))); s.listen(100)
open("listens-" + sys.argv[1], "w").close()
def serve(c):
    data = b""
    while chunk := c.recv(65536): data += chunk
    c.sendall(data.upper()); c.close()
while True:
    c, _ = s.accept(); threading.Thread(target=serve, args=(c,)).start()
END
python3 server.py ` + port + " " + family + ` >/dev/null 2>&1 & while [ ! -e listens-` + port + ` ]; do sleep 0.01; done`)
}

// roundTrip speaks with the server of listen.
func roundTrip(t *testing.T, conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}) {
	t.Helper()
	defer conn.Close()
	data := bytes.Repeat([]byte("litterbox "), 100<<10)
	go func() {
		_, _ = conn.Write(data)
		_ = conn.CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, bytes.ToUpper(data)) {
		t.Errorf("%d bytes of %d came back, %v", len(got), len(data), err)
	}
}

// The host reaches servers inside over a stream of the wire.
func TestForwardOverTheWire(t *testing.T) {
	b := newBox(t)
	b.listen("4100", "4")
	b.listen("4101", "6")
	for _, port := range []uint16{4100, 4101} {
		s := b.open()
		if err := wire.Forward(limit(t), s, port); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, s)
	}
	for port, kind := range map[uint16]fault.Kind{4102: fault.Unavailable, 0: fault.Invalid, egress.ConnectionPort: fault.Invalid, egress.ResolverPort: fault.Invalid} {
		if err := wire.Forward(limit(t), b.open(), port); fault.KindOf(err) != kind {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

// A reset crosses the wire as one, in both directions; an end stays an end.
func TestResetOverTheWire(t *testing.T) {
	b := newBox(t)
	b.sh(`cat >resets.py <<'END'
import socket,struct
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", 4110)); s.listen(100)
open("listens", "w").close()
log = open("seen", "a", buffering=1)
while True:
    c, _ = s.accept()
    what = c.recv(1)
    if what == b"r":
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if what == b"w":
        c.sendall(b"x")
        try: log.write("end %r\n" % c.recv(1))
        except ConnectionResetError: log.write("reset\n")
    c.close()
END
python3 resets.py >/dev/null 2>&1 & while [ ! -e listens ]; do sleep 0.01; done`)
	forward := func(say string) wire.Stream {
		s := b.open()
		t.Cleanup(func() { s.Close() })
		if err := wire.Forward(limit(t), s, 4110); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(s, say); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 20 {
		if _, err := forward("r").Read(make([]byte, 1)); !errors.Is(err, wire.ErrReset) {
			t.Errorf("the server resets: %v", err)
		}
		if _, err := forward("e").Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the server ends: %v", err)
		}
	}
	waits := func() wire.Stream {
		s := forward("w")
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if err := wire.Reset(waits()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server sees the reset", func() bool { return b.sh("cat seen") == "reset" })
	if err := waits().CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "and the end", func() bool { return b.sh("cat seen") == "reset\nend b''" })
}

// And as descriptors, where they share a kernel.
func TestForwardAsDescriptors(t *testing.T) {
	b := newBox(t)
	b.listen("4100", "4")
	b.listen("4101", "6")
	conn, err := net.Dial("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, wire.ForwardHello); err != nil {
		t.Fatal(err)
	}
	dialer := wire.NewDialer(conn.(*net.UnixConn))
	served := make(chan error, 1)
	go func() { served <- dialer.Serve() }()
	for _, port := range []uint16{4100, 4101} {
		inside, err := dialer.Dial(port, limit(t).Done())
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, inside)
	}
	if _, err := dialer.Dial(4102, limit(t).Done()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "nothing listens there") {
		t.Errorf("nobody listens: %v", err)
	}
	// The other end of a connection is in the sandbox's own network: from here
	// there is no such server.
	if _, err := net.Dial("tcp", "127.0.0.1:4100"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it is reachable without forwarding: %v", err)
	}
	dialer.Close()
	<-served
}
