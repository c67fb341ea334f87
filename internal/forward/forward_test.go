package forward_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/forward"
)

// table is what all sandboxes of a test share.
type table struct {
	mu   sync.Mutex
	held map[int]forward.Owner
}

func (t *table) reserve(_ context.Context, change func(map[int]forward.Owner) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held = map[int]forward.Owner{}
	}
	return change(t.held)
}

func open(t *testing.T, shared *table, id string, record *forward.Record, attach bool) (*forward.Listeners, []string) {
	t.Helper()
	l, notes, err := forward.Open(t.Context(), shared.reserve, id, record, attach)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, notes
}

func TestNumbersStay(t *testing.T) {
	var shared table
	record := forward.Record{Ports: []forward.Port{{Name: "api", Inside: 8000, Fixed: true}, {Name: "web"}}}
	l, notes := open(t, &shared, "a", &record, false)
	api, web := record.Ports[0], record.Ports[1]
	if api.Inside != 8000 || api.Host == 0 || web.Inside != web.Host || web.Host == 0 || api.Host == web.Host || notes != nil {
		t.Fatalf("%+v, %q", record.Ports, notes)
	}
	want := []string{
		"PORT_API=8000", "HOST_PORT_API=" + strconv.Itoa(api.Host), "PORT_WEB=" + strconv.Itoa(web.Host), "HOST_PORT_WEB=" + strconv.Itoa(web.Host),
	}
	if diff := cmp.Diff(want, record.Env()); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	l.Close()
	again := record
	again.Ports = slices.Clone(record.Ports)
	l, notes = open(t, &shared, "a", &again, false)
	if diff := cmp.Diff(record, again); diff != "" || notes != nil {
		t.Errorf("after a stop (-before +after):\n%s%q", diff, notes)
	}
	l.Close()
	// Another sandbox never gets them, also while this one is stopped.
	stolen := forward.Record{Ports: []forward.Port{{Name: "web", Host: web.Host}}}
	_, notes = open(t, &shared, "b", &stolen, false)
	if stolen.Ports[0].Host == web.Host || len(notes) != 1 {
		t.Errorf("b has %d of a, %q", stolen.Ports[0].Host, notes)
	}
	// A port that is no longer configured gives its number up.
	again.Update("", []forward.Port{{Name: "web"}})
	open(t, &shared, "a", &again, false)
	if _, held := shared.held[api.Host]; held || again.Ports[0].Host != web.Host {
		t.Errorf("held: %v, ports %+v", shared.held, again.Ports)
	}
}

// A number that another program on this machine uses is left alone, on either
// family, and the move is reported.
func TestOccupied(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"} {
		t.Run(address, func(t *testing.T) {
			other, err := net.Listen("tcp", address)
			if err != nil {
				t.Skipf("no such address here: %v", err)
			}
			defer other.Close()
			taken := other.Addr().(*net.TCPAddr).Port
			record := forward.Record{Ports: []forward.Port{{Name: "web", Host: taken, Inside: taken}}}
			attached := record
			attached.Ports = slices.Clone(record.Ports)
			var shared table
			_, notes := open(t, &shared, "a", &record, false)
			if got := record.Ports[0]; got.Host == taken || got.Inside != got.Host || len(notes) != 1 {
				t.Errorf("%+v, %q", got, notes)
			}
			// Inside it stays for a guest that runs already.
			_, notes = open(t, &shared, "b", &attached, true)
			if got := attached.Ports[0]; got.Host == taken || got.Inside != taken || len(notes) != 1 {
				t.Errorf("attached: %+v, %q", got, notes)
			}
		})
	}
}

// Many sandboxes that start at the same time never share a number.
func TestRace(t *testing.T) {
	var shared table
	var wait sync.WaitGroup
	numbers := make(chan int, 200)
	for i := range 50 {
		wait.Go(func() {
			record := forward.Record{Ports: []forward.Port{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}
			l, _, err := forward.Open(t.Context(), shared.reserve, strconv.Itoa(i), &record, false)
			if err != nil {
				t.Error(err)
				return
			}
			defer l.Close()
			for _, port := range record.Ports {
				numbers <- port.Host
			}
		})
	}
	wait.Wait()
	close(numbers)
	seen := map[int]bool{}
	for number := range numbers {
		if seen[number] {
			t.Errorf("%d was given out twice", number)
		}
		seen[number] = true
	}
	if len(seen) != 200 {
		t.Errorf("%d numbers", len(seen))
	}
}

func TestBadAddress(t *testing.T) {
	var shared table
	record := forward.Record{Listen: "192.0.2.1", Ports: []forward.Port{{Name: "web"}}}
	_, _, err := forward.Open(t.Context(), shared.reserve, "a", &record, false)
	if fault.KindOf(err) != fault.Unavailable || fault.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
	if len(shared.held) != 0 {
		t.Errorf("held: %v", shared.held)
	}
}

// inside is a server in the place of a sandbox.
func inside(t *testing.T, serve func(*net.TCPConn)) (port uint16) {
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
			go serve(conn.(*net.TCPConn))
		}
	}()
	return uint16(listener.Addr().(*net.TCPAddr).Port)
}

// wrapped hides that a connection is a socket, because a stream of the wire is none.
type wrapped struct{ conn *net.TCPConn }

func (w wrapped) Read(p []byte) (int, error)  { return w.conn.Read(p) }
func (w wrapped) Write(p []byte) (int, error) { return w.conn.Write(p) }
func (w wrapped) Close() error                { return w.conn.Close() }
func (w wrapped) CloseWrite() error           { return w.conn.CloseWrite() }
func (w wrapped) Reset() error                { return errors.Join(w.conn.SetLinger(0), w.conn.Close()) }

// served forwards to a server and returns the address of this machine. Both
// ways of moving bytes are tried.
func served(t *testing.T, serve func(*net.TCPConn), test func(t *testing.T, address string)) {
	for name, wrap := range map[string]bool{"sockets": false, "streams": true} {
		t.Run(name, func(t *testing.T) {
			port := inside(t, serve)
			var shared table
			record := forward.Record{Ports: []forward.Port{{Name: "web", Inside: int(port), Fixed: true}}}
			l, _ := open(t, &shared, "a", &record, false)
			go l.Serve(func(port uint16, _ <-chan struct{}) (forward.Conn, error) {
				conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
				if err != nil {
					return nil, err
				}
				if wrap {
					return wrapped{conn.(*net.TCPConn)}, nil
				}
				return conn.(*net.TCPConn), nil
			}, 1000)
			test(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(record.Ports[0].Host)))
		})
	}
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// The client says that it has nothing more to send; the answer still comes.
func TestHalfClose(t *testing.T) {
	sum := func(conn *net.TCPConn) {
		defer conn.Close()
		hash := sha256.New()
		if _, err := io.Copy(hash, conn); err == nil {
			fmt.Fprintf(conn, "%x", hash.Sum(nil))
		}
	}
	served(t, sum, func(t *testing.T, address string) {
		conn := dial(t, address)
		data := bytes.Repeat([]byte("litterbox"), 1<<20)
		if _, err := conn.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if want := fmt.Sprintf("%x", sha256.Sum256(data)); err != nil || string(answer) != want {
			t.Errorf("%q, %v", answer, err)
		}
	})
}

// The server speaks first and hangs up; the client sees its last word.
func TestServerSpeaksFirst(t *testing.T) {
	greet := func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, "220 hello\r\n")
		conn.Close()
	}
	served(t, greet, func(t *testing.T, address string) {
		answer, err := io.ReadAll(dial(t, address))
		if err != nil || string(answer) != "220 hello\r\n" {
			t.Errorf("%q, %v", answer, err)
		}
	})
}

// A reset crosses over, in both directions.
func TestReset(t *testing.T) {
	reset := func(conn *net.TCPConn) {
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.SetLinger(0)
		conn.Close()
	}
	served(t, reset, func(t *testing.T, address string) {
		conn := dial(t, address)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the client sees %v", err)
		}
	})
	seen := make(chan error, 2)
	wait := func(conn *net.TCPConn) {
		defer conn.Close()
		_, err := io.Copy(io.Discard, conn)
		seen <- err
	}
	served(t, wait, func(t *testing.T, address string) {
		conn := dial(t, address)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetLinger(0)
		conn.Close()
		if err := <-seen; !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server sees %v", err)
		}
	})
}

func TestNobodyListens(t *testing.T) {
	var shared table
	record := forward.Record{Ports: []forward.Port{{Name: "web"}}}
	l, _ := open(t, &shared, "a", &record, false)
	go l.Serve(func(uint16, <-chan struct{}) (forward.Conn, error) { return nil, errors.New("nobody") }, 10)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(record.Ports[0].Host))
	conn, err := net.Dial("tcp", address) // the reset may come that early
	if err == nil {
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
	l.Close()
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the close: %v", err)
	}
}

// Hundreds of connections at once, half of them idle, do not disturb each other.
func TestManyConnections(t *testing.T) {
	echo := func(conn *net.TCPConn) {
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}
	served(t, echo, func(t *testing.T, address string) {
		var idle []*net.TCPConn
		for range 200 {
			idle = append(idle, dial(t, address))
		}
		var wait sync.WaitGroup
		var wrong atomic.Int64
		for i := range 200 {
			wait.Go(func() {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					wrong.Add(1)
					return
				}
				defer conn.Close()
				want := bytes.Repeat([]byte{byte(i)}, 10<<10)
				go func() {
					_, _ = conn.Write(want)
					_ = conn.(*net.TCPConn).CloseWrite()
				}()
				got, err := io.ReadAll(conn)
				if err != nil || !bytes.Equal(got, want) {
					wrong.Add(1)
				}
			})
		}
		wait.Wait()
		if n := wrong.Load(); n > 0 {
			t.Errorf("%d of 200 went wrong", n)
		}
		for i, conn := range idle {
			if _, err := conn.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 1)
			if _, err := io.ReadFull(conn, got); err != nil || got[0] != byte(i) {
				t.Fatalf("idle connection %d: %v, %v", i, got, err)
			}
		}
	})
}
