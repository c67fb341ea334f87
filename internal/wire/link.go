package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// MaxStreams is how many streams one link carries at the same time.
const MaxStreams = 1024

// handshakeTime bounds the handshake that Serve waits for: the socket may be
// reachable for processes that never send anything.
const handshakeTime = 10 * time.Second

// Stream is one two-way byte stream: an SSH channel, or a Unix socket to the
// keeper, which relays.
type Stream interface {
	io.ReadWriteCloser
	// CloseWrite tells the other side that nothing more will come.
	CloseWrite() error
}

// Link is the keeper's end of a connection to a guest.
type Link struct {
	conn ssh.Conn
	gone chan struct{} // closed when it has ended
	err  error         // why, once gone is closed

	conduits chan struct{} // holds one for each that is open
	memory   *memory       // of theirs
}

// Connect makes a link on conn, with the guest's key pinned: hostPrivate is
// an OpenSSH PEM, guestPublic an authorized_keys line. It owns conn from here
// on and closes it on failure. A guest of another protocol version is
// fault.Unsupported and names both; a canceled ctx ends the handshake.
func Connect(ctx context.Context, conn net.Conn, hostPrivate, guestPublic []byte) (*Link, error) {
	signer, err := ssh.ParsePrivateKey(hostPrivate)
	if err != nil {
		conn.Close()
		return nil, fault.Wrap(fault.Internal, err, "cannot read the keeper's key")
	}
	pinned, _, _, _, err := ssh.ParseAuthorizedKey(guestPublic)
	if err != nil {
		conn.Close()
		return nil, fault.Wrap(fault.Internal, err, "cannot read the guest's key")
	}
	unwatch := context.AfterFunc(ctx, func() { conn.Close() })
	checked := &versionConn{Conn: conn}
	sshConn, channels, requests, err := ssh.NewClientConn(checked, "guest", &ssh.ClientConfig{
		Config:            algorithms(),
		User:              "litterbox",
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   ssh.FixedHostKey(pinned),
		HostKeyAlgorithms: []string{pinned.Type()},
		ClientVersion:     Identification,
	})
	if !unwatch() && err == nil {
		sshConn.Close()
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, connectError(ctx, checked, err)
	}
	// The guest has no requests for the host.
	go ssh.DiscardRequests(requests)
	go func() {
		for c := range channels {
			c.Reject(ssh.Prohibited, "the guest opens no streams")
		}
	}()
	l := &Link{conn: sshConn, gone: make(chan struct{}), conduits: make(chan struct{}, MaxConduits), memory: newMemory(keeperMemory)}
	go func() {
		l.err = sshConn.Wait()
		close(l.gone)
	}()
	return l, nil
}

func connectError(ctx context.Context, conn *versionConn, err error) error {
	switch {
	case ctx.Err() != nil:
		return canceled(ctx, "cannot connect to the sandbox")
	case conn.foreign != "":
		return fault.New(fault.Unsupported, "cannot talk to the sandbox: it speaks %q, this litterbox speaks %q",
			printable(conn.foreign), Identification).WithHint("stop the sandbox and start it again")
	}
	return fault.Wrap(fault.Unavailable, err, "cannot connect to the sandbox")
}

// Open opens a stream; any goroutine may. A link that has ended answers
// fault.Unavailable.
func (l *Link) Open() (Stream, error) {
	type opened struct {
		channel  ssh.Channel
		requests <-chan *ssh.Request
		err      error
	}
	// Not waited for here: the library never answers an open that comes just as
	// the connection ends (x/crypto 0.58, mux.openChannel).
	answer := make(chan opened, 1)
	go func() {
		channel, requests, err := l.conn.OpenChannel(ChannelType, nil)
		answer <- opened{channel, requests, err}
	}()
	select {
	case o := <-answer:
		if o.err != nil {
			return nil, fault.Wrap(fault.Unavailable, o.err, "cannot open a stream to the sandbox")
		}
		go l.guard(o.channel)
		return newChannel(o.channel, o.requests), nil
	case <-l.gone:
		return nil, fault.New(fault.Unavailable, "cannot open a stream to the sandbox: the connection has ended")
	}
}

// Wait returns when the link has ended, whichever side ended it.
func (l *Link) Wait() error {
	<-l.gone
	if l.err != nil && !errors.Is(l.err, io.EOF) && !errors.Is(l.err, net.ErrClosed) {
		return fault.Wrap(fault.Unavailable, l.err, "cannot keep the connection to the sandbox")
	}
	return nil
}

// Close ends the link and every stream on it.
func (l *Link) Close() error {
	err := l.conn.Close()
	if errors.Is(err, net.ErrClosed) { // the other end was faster
		err = nil
	}
	return err
}

// Serve answers on conn as the guest, to the holder of one key only:
// guestPrivate is an OpenSSH PEM, hostPublic an authorized_keys line. handle
// runs on a goroutine for each stream, which is closed when it returns. Serve
// returns when the connection has ended and every handle has returned.
func Serve(conn net.Conn, guestPrivate, hostPublic []byte, handle func(Stream)) error {
	return ServeAll(conn, guestPrivate, hostPublic, Handlers{Stream: handle})
}

// ServeAll is Serve for a guest that carries connections, too.
func ServeAll(conn net.Conn, guestPrivate, hostPublic []byte, handlers Handlers) error {
	defer conn.Close()
	signer, err := ssh.ParsePrivateKey(guestPrivate)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot read the guest's key")
	}
	allowed, _, _, _, err := ssh.ParseAuthorizedKey(hostPublic)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "cannot read the keeper's key")
	}
	config := &ssh.ServerConfig{
		Config:        algorithms(),
		ServerVersion: Identification,
		MaxAuthTries:  1,
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), allowed.Marshal()) {
				return nil, errors.New("unknown key")
			}
			return nil, nil
		},
	}
	config.AddHostKey(signer)

	// Streams that cannot have deadlines (a pipe of some driver) go without.
	_ = conn.SetDeadline(time.Now().Add(handshakeTime))
	sshConn, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot answer the keeper")
	}
	_ = conn.SetDeadline(time.Time{})
	defer sshConn.Close()
	go ssh.DiscardRequests(requests)

	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, MaxStreams)
	shared := newMemory(guestMemory)
	for c := range channels {
		if kind := c.ChannelType(); kind != ChannelType && !handlers.knows(kind) {
			c.Reject(ssh.UnknownChannelType, "litterbox does not know "+strconv.Quote(cut(kind)))
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			c.Reject(ssh.ResourceShortage, "too many streams at once")
			continue
		}
		running.Go(func() {
			defer func() { <-places }()
			var carry func(*Conduit)
			if c.ChannelType() != ChannelType {
				if carry = handlers.conduit(c); carry == nil {
					return
				}
			}
			accepted, requests, err := c.Accept()
			if err != nil {
				if carry != nil {
					carry(nil)
				}
				return
			}
			if carry != nil {
				conduit := newConduit(accepted, shared, func() { sshConn.Close() })
				go conduit.listen(requests)
				carry(conduit)
				_ = conduit.Close() // a closed one stays closed
				return
			}
			stream := newChannel(accepted, requests)
			defer stream.Close()
			handlers.Stream(stream)
		})
	}
	return nil
}

// algorithms pins one suite of each sort. The stream is local or already
// carried over TLS, so the cheapest modern key exchange will do; it also keeps
// the post-quantum tables out of an idle guest's memory.
func algorithms() ssh.Config {
	return ssh.Config{
		KeyExchanges: []string{ssh.KeyExchangeCurve25519},
		Ciphers:      []string{ssh.CipherAES128GCM, ssh.CipherChaCha20Poly1305},
	}
}

// versionConn looks at the identification line (RFC 4253, 4.2) before the SSH
// library does, which hides it when anything after it fails.
type versionConn struct {
	net.Conn
	line    []byte
	done    bool
	foreign string // the other side's identification, when it is not ours
}

func (c *versionConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.done {
		return n, err
	}
	c.line = append(c.line, p[:n]...)
	line, _, whole := bytes.Cut(c.line, []byte("\n"))
	if !whole && len(c.line) < 255 {
		return n, err
	}
	c.done = true
	if said := string(bytes.TrimRight(line, "\r")); said != Identification {
		c.foreign = said
		return 0, errors.New("another version")
	}
	c.line = nil
	return n, err
}
