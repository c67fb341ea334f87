package guest_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// The keeper takes one connection after the other at a socket that the guest makes, and
// makes again where a program has removed it. Each is a connection of its own.
func TestSSHAgentSocket(t *testing.T) {
	b := newBox(t)
	socket := filepath.Join(b.dir, "home", "agent", "socket")
	accept := func(taken chan<- io.ReadWriteCloser) {
		conn, err := wire.AcceptSSHAgent(limit(t), b.open(), socket)
		if err != nil {
			t.Error(err)
		}
		taken <- conn
	}
	// program asks, is answered, and sees the end.
	program := func(question, answer []byte) {
		t.Helper()
		taken := make(chan io.ReadWriteCloser)
		go accept(taken)
		var conn net.Conn
		eventually(t, "a socket", func() bool {
			var err error
			conn, err = net.Dial("unix", socket)
			return err == nil
		})
		defer conn.Close()
		agent := <-taken
		if agent == nil {
			t.FailNow()
		}
		go func() { _, _ = conn.Write(question) }()
		got := make([]byte, len(question))
		if _, err := io.ReadFull(agent, got); err != nil || !bytes.Equal(got, question) {
			t.Errorf("%d bytes of %d arrived, %v", len(got), len(question), err)
		}
		go func() { _, _ = agent.Write(answer) }()
		got = make([]byte, len(answer))
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, answer) {
			t.Errorf("%d bytes of %d came back, %v", len(got), len(answer), err)
		}
		conn.Close()
		if n, err := agent.Read(got); !errors.Is(err, io.EOF) {
			t.Errorf("after the program's end: %d bytes, %v", n, err)
		}
		_ = agent.Close() // the guest has closed it
	}
	program([]byte("one"), []byte("1"))
	program(bytes.Repeat([]byte("question"), 30<<10), bytes.Repeat([]byte("answer"), 40<<10))
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	program([]byte("two"), []byte("2"))

	// An agent that closes the connection ends the program's.
	taken := make(chan io.ReadWriteCloser)
	go accept(taken)
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	agent := <-taken
	if agent == nil {
		t.FailNow()
	}
	_ = agent.Close() // nothing is left to say
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the agent's end: %d bytes, %v", n, err)
	}

	// A keeper that went away while it waited has taken nothing: the next one has it.
	gone := b.open()
	waits := make(chan error)
	go func() {
		_, err := wire.AcceptSSHAgent(limit(t), gone, socket)
		waits <- err
	}()
	_ = gone.Close() // it may not have said anything yet
	if err := <-waits; err == nil {
		t.Error("a closed stream took a connection")
	}
	program([]byte("three"), []byte("3"))
}

// A socket that cannot be made is the keeper's error.
func TestSSHAgentSocketThatCannotBe(t *testing.T) {
	b := newBox(t)
	if _, err := wire.AcceptSSHAgent(limit(t), b.open(), "/proc/agent/socket"); err == nil {
		t.Error("there is a socket in /proc")
	}
}
