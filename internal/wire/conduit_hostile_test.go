package wire_test

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// hostile is a guest made of the SSH library: it answers each channel by answer.
func hostile(t *testing.T, answer func(ssh.NewChannel)) *wire.Link {
	t.Helper()
	k := keys(t)
	here, there := sockets(t)
	go func() {
		signer, err := ssh.ParsePrivateKey(k.GuestPrivate)
		if err != nil {
			return
		}
		config := &ssh.ServerConfig{ServerVersion: wire.Identification, NoClientAuth: true,
			PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
		config.AddHostKey(signer)
		conn, channels, requests, err := ssh.NewServerConn(there, config)
		if err != nil {
			return
		}
		defer conn.Close()
		go ssh.DiscardRequests(requests)
		for c := range channels {
			go answer(c)
		}
	}()
	link, err := wire.Connect(context.Background(), here, k.HostPrivate, k.GuestPublic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	return link
}

// ends waits for an end that a guest has caused.
func ends(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("%s goes on", what)
	}
}

func over(link *wire.Link) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		_ = link.Wait()
		close(ended)
	}()
	return ended
}

// A guest that sends more than it was allowed loses the conduit, and the keeper
// does not hold its data.
func TestConduitGuestSendsTooMuch(t *testing.T) {
	sent := make(chan int, 1)
	link := hostile(t, func(c ssh.NewChannel) {
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		n, _ := channel.Write(make([]byte, 16<<20)) // no one reads a byte of it
		sent <- n
	})
	c, err := link.Carry(1)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, "a conduit that took too much", c.Gone())
	if n := <-sent; n >= 16<<20 {
		t.Errorf("%d bytes were taken that nobody has read", n)
	}
	if _, err := io.ReadAll(c); err == nil {
		t.Error("it can still be read")
	}
}

// Data after an end of data, and extended data, end the link: the SSH library
// would keep them, and nothing reads them.
func TestConduitGuestSendsWhereNobodyReads(t *testing.T) {
	for name, send := range map[string]func(ssh.Channel){
		"beside the data": func(c ssh.Channel) { _, _ = c.Stderr().Write([]byte("x")) },
		// x/crypto sends nothing after its own end, so the end alone must do.
		"after the end": func(c ssh.Channel) { _ = c.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			carried := make(chan struct{})
			link := hostile(t, func(c ssh.NewChannel) {
				channel, requests, err := c.Accept()
				if err != nil {
					return
				}
				go ssh.DiscardRequests(requests)
				<-carried // the link must not end under the caller
				send(channel)
			})
			_, err := link.Carry(1)
			close(carried)
			if err != nil {
				t.Fatal(err)
			}
			ends(t, "the link", over(link))
		})
	}
}

// A guest that answers no announced connection has a bounded number of them,
// and each caller is free as soon as it gives up or the link ends.
func TestConduitGuestAnswersNothing(t *testing.T) {
	asked := make(chan struct{}, wire.MaxConduits+1)
	link := hostile(t, func(ssh.NewChannel) { asked <- struct{}{} })
	given := make(chan struct{})
	close(given)
	for range wire.MaxConduits {
		if _, err := link.Dial(80, given); fault.KindOf(err) != fault.Canceled {
			t.Fatalf("given up: %v", err)
		}
	}
	if _, err := link.Carry(1); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("one more than there is room for: %v", err)
	}
	for range wire.MaxConduits {
		<-asked
	}
	if len(asked) > 0 {
		t.Error("more were asked for than there is room for")
	}
}

// A guest that reads nothing does not hold up a reset or a close.
func TestConduitGuestReadsNothing(t *testing.T) {
	k := keys(t)
	here, there := sockets(t)
	deaf := &deafConn{Conn: there, wake: make(chan struct{})}
	conduit := make(chan *wire.Conduit, 1)
	go func() {
		_ = wire.ServeAll(deaf, k.GuestPrivate, k.HostPublic, wire.Handlers{Stream: func(wire.Stream) {},
			Announced: func(uint64) (func(*wire.Conduit), error) {
				return func(c *wire.Conduit) { conduit <- c; <-c.Gone() }, nil
			}})
	}()
	link, err := wire.Connect(context.Background(), here, k.HostPrivate, k.GuestPublic)
	if err != nil {
		t.Fatal(err)
	}
	defer close(deaf.wake)
	defer link.Close()
	var all []*wire.Conduit
	for id := range uint64(64) {
		c, err := link.Carry(id)
		if err != nil {
			t.Fatal(err)
		}
		<-conduit
		all = append(all, c)
	}
	deaf.deafen()
	for _, c := range all { // more than all buffers between the two hold
		go func() { _, _ = c.Write(make([]byte, 32<<10)) }()
	}
	for _, c := range all {
		done := make(chan struct{})
		go func() {
			_ = c.Reset()
			close(done)
		}()
		ends(t, "a reset", done)
	}
}

// deafConn stops reading.
type deafConn struct {
	net.Conn
	deaf atomic.Bool
	wake chan struct{}
}

func (d *deafConn) deafen() { d.deaf.Store(true) }

func (d *deafConn) Read(p []byte) (int, error) {
	if d.deaf.Load() {
		<-d.wake
		return 0, io.EOF
	}
	return d.Conn.Read(p)
}
