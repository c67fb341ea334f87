package service_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// flooded returns a sandbox with a server behind two ports, and a count of its
// keeper's descriptors.
func flooded(t *testing.T) (h *program.Host, raw, web string, descriptors func() int) {
	t.Helper()
	program.Need(t, "node")
	h = start(t)
	h.Put(filepath.Join(h.Repo, ".litterbox.toml"), `
[container]
ports = ["web", "raw"]
[container.services.web]
command = ["node", "server.js"]
ready = { file = "/tmp/ready" }
`)
	h.Must("create", "a")
	h.Must("service", "a", "start")
	keeper, _ := h.MustProcesses("a")
	return h, "127.0.0.1:" + port(h, "a", "raw"), "http://127.0.0.1:" + port(h, "a", "web"), func() int {
		t.Helper()
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", keeper))
		if err != nil {
			t.Fatalf("the keeper is gone: %v", err)
		}
		return len(entries)
	}
}

// asked counts the bytes that a server answers when its client has finished.
func asked(t *testing.T, conn net.Conn, bytes int) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(conn); err != nil || string(answer) != fmt.Sprintf("got %d\n", bytes) {
		t.Errorf("a server inside answered %q, %v; want %d bytes", answer, err, bytes)
	}
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// Clients of a forwarded port that say nothing, break off or reset in the middle
// cost the keeper a bounded number of descriptors, which it gives back, and end
// no other connection. Any local program can be such a client.
func TestPortsUnderFloods(t *testing.T) {
	h, raw, web, descriptors := flooded(t)
	before := descriptors()
	bystander := dial(t, raw)
	if _, err := bystander.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	const silent = 200
	held := make([]*net.TCPConn, silent)
	for i := range held {
		held[i] = dial(t, raw)
	}
	// The control: they are there, and cost something.
	eventually(t, "the silent ones are forwarded", func() bool { return descriptors() >= before+silent })
	var resetting sync.WaitGroup
	for range 20 {
		resetting.Go(func() {
			for i := range 100 {
				conn, err := net.DialTimeout("tcp", raw, patience)
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					_, _ = conn.Write(make([]byte, 100<<10)) // may be refused in the middle
				}
				_ = conn.(*net.TCPConn).SetLinger(0)
				_ = conn.Close()
			}
		})
	}
	resetting.Wait()
	// Two sockets and the pipe between them for each connection and direction. The
	// keeper may still be taking those that were reset already out of its queue.
	eventually(t, "the keeper holds descriptors for the silent ones alone", func() bool { return descriptors() <= before+(silent+1)*6+100 })
	if got := get(t, web+"/slow?1"); got != "slow ?1" {
		t.Errorf("beside the flood a server answers %q", got)
	}
	if got := h.Inside("a", "echo", "here"); got.Stdout != "here\n" {
		t.Errorf("beside the flood no command runs: %+v", got)
	}
	for _, conn := range held {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
	asked(t, bystander, 1000)
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "the keeper gives back what the flood took", func() bool { return descriptors() <= before+20 })
}

// A connection that is open while its sandbox is paused stops with it: nothing is read
// or lost, a flood of new ones stays bounded, and all go on when the sandbox does.
func TestPausedConnectionsGoOn(t *testing.T) {
	h, raw, web, descriptors := flooded(t)
	before := descriptors()
	conn := dial(t, raw)
	if _, err := conn.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	h.Must("pause", "a")
	// More than all buffers on the way can hold: the writer waits, and no memory
	// grows.
	const more = 64 << 20
	written := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, more))
		written <- err
	}()
	const waiting = 100
	late := make([]*net.TCPConn, waiting)
	for i := range late {
		late[i] = dial(t, raw)
	}
	if got, most := descriptors(), before+(waiting+1)*6+100; got > most {
		t.Errorf("the keeper holds %d descriptors, more than %d", got, most)
	}
	select {
	case err := <-written:
		t.Errorf("%d bytes went into a sandbox that is paused: %v", more, err)
	default:
	}
	h.Must("resume", "a")
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	asked(t, conn, 1000+more)
	if got := get(t, web+"/slow?2"); got != "slow ?2" {
		t.Errorf("after the pause a server answers %q", got)
	}
}
