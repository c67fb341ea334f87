package egress_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

func TestTooManyConnections(t *testing.T) {
	w := newWorld(t, egress.Options{MaxConns: 4}, "a.example:7")
	w.host("a.example", internet)
	w.serve(internet+":7", echo)
	var open []*net.TCPConn
	for range 4 {
		c := w.openName("a.example", 7)
		write(t, c, "x")
		readUntil(t, c, "x")
		open = append(open, c)
	}
	wantWhy(t, w.refused(w.openName("a.example", 7)), "too many connections")
	for _, c := range open {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.handlers.Wait()
	c := w.openName("a.example", 7)
	write(t, c, "x")
	readUntil(t, c, "x")
}

// Unfinished heads share a bound of memory; the one that would pass it goes.
func TestManyLongHeads(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example")
	w.host("a.example", internet)
	head := "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 30<<10)
	var conns []*net.TCPConn
	for range 400 {
		c := w.openName("a.example", 80)
		if _, err := io.WriteString(c, head); err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	wantWhy(t, w.why(egress.Denied), "too many unfinished heads")
	for _, c := range conns {
		_ = c.Close()
	}
	w.handlers.Wait()
	w.serve(internet+":80", func(c *net.TCPConn) {
		readUntil(t, c, "\r\n\r\n")
		write(t, c, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	c := w.openName("a.example", 80)
	write(t, c, "GET / HTTP/1.1\r\nHost: a.example\r\nX: "+strings.Repeat("x", 20<<10)+"\r\n\r\n")
	readUntil(t, c, "\r\n\r\n")
}

func TestThousandConnections(t *testing.T) {
	const many = 1000
	w := newWorld(t, egress.Options{}, "a.example:7")
	w.host("a.example", internet)
	w.serve(internet+":7", echo)
	conns := make([]*net.TCPConn, many)
	for i := range conns {
		conns[i] = w.openName("a.example", 7)
	}
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(func() {
			write(t, c, "hello\n")
			if got := readUntil(t, c, "\n"); got != "hello\n" {
				t.Errorf("the echo was %q", got)
			}
		})
	}
	all.Wait()
	if open := w.proxy.Connections(); open != many {
		t.Errorf("%d connections are open, want %d", open, many)
	}
	for _, c := range conns {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.handlers.Wait()
	seen := w.seen.Snapshot()
	if len(seen) != 1 || seen[0].Count != many || seen[0].BytesIn != 6*many || seen[0].BytesOut != 6*many {
		t.Errorf("observed %+v", seen)
	}
}

// Long streams pass whole, in both directions at once and through pauses.
func TestMuchData(t *testing.T) {
	w := newWorld(t, egress.Options{}, "a.example:7")
	w.host("a.example", internet)
	w.serve(internet+":7", echo)
	c := w.openName("a.example", 7)
	data := make([]byte, 48<<20)
	rand.NewChaCha8([32]byte{1}).Read(data)
	var sending sync.WaitGroup
	sending.Go(func() {
		for part := range slices.Chunk(data, 16<<20) {
			if _, err := c.Write(part); err != nil {
				t.Error(err)
			}
		}
		if err := c.CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	sum := sha256.New()
	n, err := io.Copy(sum, c)
	sending.Wait()
	want := sha256.Sum256(data)
	if err != nil || n != int64(len(data)) || !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Errorf("%d bytes came back, %v", n, err)
	}
	w.handlers.Wait()
	if seen := w.seen.Snapshot(); len(seen) != 1 || seen[0].BytesIn != n || seen[0].BytesOut != n {
		t.Errorf("observed %+v", seen)
	}
}
