package wire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// pair is a connected pair of sockets.
func pair(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	listener, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled.(*net.UnixConn), accepted.(*net.UnixConn)
}

func keys(t *testing.T) wire.Keys {
	t.Helper()
	k, err := wire.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// serve answers on conn and delivers what Serve returned.
func serve(conn net.Conn, k wire.Keys, handle func(wire.Stream)) <-chan error {
	served := make(chan error, 1)
	go func() { served <- wire.Serve(conn, k.GuestPrivate, k.HostPublic, handle) }()
	return served
}

func echo(s wire.Stream) { _, _ = io.Copy(s, s) }

func TestLink(t *testing.T) {
	k := keys(t)
	here, there := pair(t)
	served := serve(there, k, echo)
	link, err := wire.Connect(context.Background(), here, k.HostPrivate, k.GuestPublic)
	if err != nil {
		t.Fatal(err)
	}
	// Two at once, and more than a window's worth on one of them.
	idle, err := link.Open()
	if err != nil {
		t.Fatal(err)
	}
	s, err := link.Open()
	if err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("0123456789"), 500000)
	go func() {
		_, _ = s.Write(sent)
		_ = s.CloseWrite()
	}()
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes of %d came back, %v", len(got), len(sent), err)
	}
	if _, err := idle.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(idle, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if err := link.Close(); err != nil {
		t.Error(err)
	}
	if err := link.Wait(); err != nil {
		t.Errorf("an ordinary end: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("served: %v", err)
	}
	if _, err := link.Open(); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("open after the end: %v", err)
	}
	if _, err := io.ReadFull(idle, make([]byte, 1)); err == nil {
		t.Error("a stream outlives its link")
	}
}

func TestLinkRefusesOtherKeys(t *testing.T) {
	k, other := keys(t), keys(t)
	for name, c := range map[string]struct{ host, guest []byte }{
		"another keeper": {other.HostPrivate, k.GuestPublic},
		"another guest":  {k.HostPrivate, other.GuestPublic},
		"swapped":        {k.GuestPrivate, k.GuestPublic},
	} {
		here, there := pair(t)
		served := serve(there, k, func(wire.Stream) { t.Errorf("%s: a stream was served", name) })
		if _, err := wire.Connect(context.Background(), here, c.host, c.guest); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		if err := <-served; err == nil {
			t.Errorf("%s: the guest is content", name)
		}
	}
}

func TestLinkNamesAnotherVersion(t *testing.T) {
	k := keys(t)
	here, there := pair(t)
	go func() {
		_, _ = io.WriteString(there, "SSH-2.0-litterbox_9\x1b[m\r\n")
		_, _ = io.Copy(io.Discard, there)
	}()
	_, err := wire.Connect(context.Background(), here, k.HostPrivate, k.GuestPublic)
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "litterbox_9") ||
		!strings.Contains(err.Error(), wire.Identification) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
}

func TestConnectCanBeCanceled(t *testing.T) {
	k := keys(t)
	here, _ := pair(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no patience")
	cancel(why)
	if _, err := wire.Connect(ctx, here, k.HostPrivate, k.GuestPublic); fault.KindOf(err) != fault.Canceled || !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// Nothing else that SSH can do is offered.
func TestServeRefusesOtherChannels(t *testing.T) {
	k := keys(t)
	here, there := pair(t)
	serve(there, k, echo)
	signer, err := ssh.ParsePrivateKey(k.HostPrivate)
	if err != nil {
		t.Fatal(err)
	}
	conn, channels, requests, err := ssh.NewClientConn(here, "", &ssh.ClientConfig{
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(requests)
	go func() {
		for range channels {
			t.Error("the guest opened a channel")
		}
	}()
	for _, kind := range []string{"session", "direct-tcpip", ""} {
		var refused *ssh.OpenChannelError
		if _, _, err := conn.OpenChannel(kind, nil); !errors.As(err, &refused) || refused.Reason != ssh.UnknownChannelType {
			t.Errorf("%q: %v", kind, err)
		}
	}
	if ok, _, err := conn.SendRequest("tcpip-forward", true, nil); ok || err != nil {
		t.Errorf("forwarding: %v, %v", ok, err)
	}
	for range wire.MaxStreams {
		if _, _, err := conn.OpenChannel(wire.ChannelType, nil); err != nil {
			t.Fatal(err)
		}
	}
	var refused *ssh.OpenChannelError
	if _, _, err := conn.OpenChannel(wire.ChannelType, nil); !errors.As(err, &refused) || refused.Reason != ssh.ResourceShortage {
		t.Errorf("one stream too many: %v", err)
	}
	conn.Close()
}

// The keeper's side refuses a guest that opens channels.
func TestConnectRefusesTheGuestsChannels(t *testing.T) {
	k := keys(t)
	here, there := pair(t)
	signer, err := ssh.ParsePrivateKey(k.GuestPrivate)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true, ServerVersion: wire.Identification}
	config.AddHostKey(signer)
	refused := make(chan error, 1)
	go func() {
		conn, channels, requests, err := ssh.NewServerConn(there, config)
		if err != nil {
			refused <- err
			return
		}
		go ssh.DiscardRequests(requests)
		go func() {
			for c := range channels {
				c.Reject(ssh.Prohibited, "")
			}
		}()
		_, _, err = conn.OpenChannel(wire.ChannelType, nil)
		refused <- err
	}()
	link, err := wire.Connect(context.Background(), here, k.HostPrivate, k.GuestPublic)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	var why *ssh.OpenChannelError
	if err := <-refused; !errors.As(err, &why) || why.Reason != ssh.Prohibited {
		t.Errorf("%v", err)
	}
}

// An end and a reset are distinguished, regardless of what came before.
func TestReset(t *testing.T) {
	t.Parallel()
	pairs := keys(t)
	host, inside := pair(t)
	served := make(chan error, 1)
	go func() {
		served <- wire.Serve(inside, pairs.GuestPrivate, pairs.HostPublic, func(s wire.Stream) {
			what := make([]byte, 1)
			if _, err := io.ReadFull(s, what); err != nil {
				return
			}
			_, _ = s.Write(bytes.Repeat([]byte("x"), 1000))
			if what[0] == 'r' {
				_ = wire.Reset(s)
			}
		})
	}()
	link, err := wire.Connect(t.Context(), host, pairs.HostPrivate, pairs.GuestPublic)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		s, err := link.Open()
		if err != nil {
			t.Fatal(err)
		}
		what, want := "r", wire.ErrReset
		if i%2 == 0 {
			what, want = "e", nil
		}
		if _, err := io.WriteString(s, what); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(s); !errors.Is(err, want) {
			t.Fatalf("stream %d, %s: %v", i, what, err)
		}
		s.Close()
	}
	if err := link.Close(); err != nil {
		t.Fatal(err)
	}
	<-served
}

// gated holds back data that has arrived.
type gated struct {
	net.Conn
	sync.Mutex
}

func (g *gated) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	g.Lock()
	defer g.Unlock()
	return n, err
}

// A stream closed while a read waits ends that read, even if the rest of its
// data is already awaited.
func TestCloseEndsARead(t *testing.T) {
	t.Parallel()
	k := keys(t)
	here, there := pair(t)
	served := serve(there, k, echo)
	gate := &gated{Conn: here}
	link, err := wire.Connect(t.Context(), gate, k.HostPrivate, k.GuestPublic)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s, err := link.Open()
		if err != nil {
			t.Fatal(err)
		}
		gate.Lock()
		s.Close()
		time.Sleep(time.Millisecond) // most likely the rest is awaited now
		ended := make(chan error, 1)
		go func() {
			_, err := s.Read(make([]byte, 1))
			ended <- err
		}()
		time.Sleep(time.Millisecond)
		gate.Unlock()
		select {
		case err := <-ended:
			if err != io.EOF {
				t.Errorf("the read ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the read never ends")
		}
	}
	if err := link.Close(); err != nil {
		t.Fatal(err)
	}
	<-served
}
