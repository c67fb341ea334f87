// Package ssh serves one sandbox to an OpenSSH client: commands, shells, files and
// connections to ports inside. The client starts this program as its ProxyCommand
// and speaks to it over standard input and output, so there is no port, and the
// user who started the process is the one served.
//
// It grants what the commands exec, shell and cp grant and records the same; a
// client that asks for more is refused. It deliberately decides nothing else:
// each channel is a use case of the engine.
//
// Start reading at [Serve].
package ssh

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/litterbox-sandbox/litterbox/internal/door"
	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/engine/use"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
)

// useCases are the use cases that it serves; tests put a fake here.
type useCases interface {
	Begin(context.Context, engine.Actor, engine.Action) (context.Context, *engine.Call, error)
	Exec(context.Context, engine.ExecRequest) (engine.ExecResult, error)
	use.Doors
	FindProgram(ctx context.Context, place engine.Place, program string, allowDegraded bool) (bool, error)
}

// Options are what one connection needs.
type Options struct {
	Engine  useCases
	Host    engine.DoorHost
	HostKey ssh.Signer
	Shell   string // the user's own, by its base name; sh where it is not there inside
	Client  io.ReadWriteCloser
	Warn    func(string) // for messages that the client cannot show
}

// mostChannels bounds how many channels one client has open at once.
const mostChannels = 512

// server is one connection.
type server struct {
	Options
	conn *ssh.ServerConn

	serving sync.WaitGroup
	open    atomic.Int64
	closed  atomic.Bool // the client wants no further sessions
}

// Serve serves one client until it goes away or ctx ends, and returns when
// everything it started has ended and is committed.
func Serve(ctx context.Context, o Options) error {
	var refused error
	config := &ssh.ServerConfig{
		NoClientAuth: true,
		NoClientAuthCallback: func(meta ssh.ConnMetadata) (*ssh.Permissions, error) {
			if meta.User() != door.User {
				refused = fault.New(fault.Denied, "cannot log in to sandbox %q as %q: commands run as the sandbox's own user", o.Host.Name, printable(meta.User())).
					WithHint("ssh %s", printable(o.Host.Host))
				return nil, refused
			}
			return &ssh.Permissions{}, nil
		},
		ServerVersion: "SSH-2.0-litterbox",
	}
	config.AddHostKey(o.HostKey)
	unwatch := context.AfterFunc(ctx, func() { o.Client.Close() })
	defer unwatch()
	conn, channels, requests, err := ssh.NewServerConn(stdio{o.Client}, config)
	if err != nil && refused != nil {
		return refused
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot serve sandbox %q over ssh", o.Host.Name).WithHint("litterbox ssh-config --install")
	}
	s := &server{Options: o, conn: conn}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.serving.Go(func() { s.global(requests) })
	s.serving.Go(func() { s.Engine.AccompanyEditors(ctx, s.place(), s.actor(), func() bool { return s.open.Load() > 0 }) })
	for channel := range channels {
		s.accept(ctx, channel)
	}
	cancel() // the client is gone; its work is committed
	s.serving.Wait()
	return nil
}

// place is the sandbox that is served.
func (s *server) place() engine.Place { return engine.Place{Dir: s.Host.Project, Name: s.Host.Name} }

// actor is the served client, for the audit log.
func (s *server) actor() engine.Actor {
	return engine.Actor{Via: "ssh", Client: printable(string(s.conn.ClientVersion()))}
}

// accept begins a channel, or refuses it and says why.
func (s *server) accept(ctx context.Context, channel ssh.NewChannel) {
	if s.open.Load() >= mostChannels {
		_ = channel.Reject(ssh.ResourceShortage, "too many channels at the same time")
		return
	}
	serve := s.session
	switch channel.ChannelType() {
	case "session":
		if s.closed.Load() {
			_ = channel.Reject(ssh.Prohibited, "no further sessions were wanted")
			return
		}
	case "direct-tcpip":
		serve = s.forward
	case "direct-streamlocal@openssh.com":
		_ = channel.Reject(ssh.Prohibited, "sockets inside are not forwarded: forward a port")
		return
	default:
		_ = channel.Reject(ssh.UnknownChannelType, "a sandbox has sessions and forwarded ports only")
		return
	}
	s.open.Add(1)
	s.serving.Go(func() {
		defer s.open.Add(-1)
		serve(ctx, channel)
	})
}

// global answers requests about the connection itself.
func (s *server) global(requests <-chan *ssh.Request) {
	for r := range requests {
		switch r.Type {
		case "no-more-sessions@openssh.com":
			s.closed.Store(true)
		case "tcpip-forward", "streamlocal-forward@openssh.com":
			s.Warn("the sandbox does not get a connection to this machine by ssh -R: what asks for it does not say where it leads, so no rule can allow it\n" +
				"  try: litterbox allow " + s.Host.Name + " HOST:PORT")
		}
		if r.WantReply {
			_ = r.Reply(false, nil) // a lost client needs no answer
		}
	}
}

// stdio is standard input and output as a connection.
type stdio struct{ io.ReadWriteCloser }

func (stdio) LocalAddr() net.Addr              { return pipe{} }
func (stdio) RemoteAddr() net.Addr             { return pipe{} }
func (stdio) SetDeadline(time.Time) error      { return nil }
func (stdio) SetReadDeadline(time.Time) error  { return nil }
func (stdio) SetWriteDeadline(time.Time) error { return nil }

// pipe is the address of a connection that has none.
type pipe struct{}

func (pipe) Network() string { return "pipe" }
func (pipe) String() string  { return "pipe" }
